// A circuit: its graph, layer over layer, the edge under the pointer in words, its figures, and its edges as a table.
import type { App, Show } from "../app";
import { edgeInWords, figuresOfCircuit, nodeInWords, shownEdges, strongestEdges } from "../circuit";
import { h } from "../dom";
import type { Circuited } from "../given";
import { visible } from "../names";
import type { Run } from "../page";
import type { Choice } from "../state";
import { analysisView } from "./analysed";
import { EdgeTable } from "./edges";
import { Graph } from "./graph";

/** The number of the chosen edge; null: none. */
function chosenEdge(now: Choice, its: Circuited): number | null {
  const number = /^edge:(\d{1,5})$/.exec(now.cell)?.[1];
  return number !== undefined && Number(number) < shownEdges(its, now.edges) ? Number(number) : null;
}

function figuresList(its: Circuited): HTMLElement {
  const lines = figuresOfCircuit(its).map(({ title, value, about }) =>
    h("div", {}, h("dt", {}, title), h("dd", {}, h("b", {}, value), " ", h("span", { class: "quiet" }, about))),
  );
  return h("dl", { class: "told" }, ...lines);
}

const broad = 20; // columns that have no room beside the words

const meaning =
  "A score is the share of the decision that gradients expect of an edge, an effect the share that is lost " +
  "without it, measured. A circuit says through which edges what differs between the texts reaches the answer, not " +
  "what a head computes, and other sets of edges may do as well.";

export function circuitView(app: App): Show {
  const says = h("p", { class: "adds", "aria-live": "polite" });
  const slider = h("input", {
    type: "range",
    min: 1,
    step: 1,
    "aria-label": "How many edges are shown, the strongest",
    input: () => choose(Number(slider.value)),
  });
  const count = h("output", {});
  const figures = h("div", { class: "sides" });
  const origin = h("p", { class: "quiet" });
  let of: { run: Run; its: Circuited } | null = null;

  const choose = (edges: number) => {
    const otherwise = of !== null && edges === shownEdges(of.its, 0);
    app.choose({ edges: otherwise ? 0 : edges }, "edges");
  };
  const say = (what: number | string | null) => {
    if (!of) return;
    const { run, its } = of;
    const now = app.now();
    const first = shownEdges(its, now.edges);
    const told = what ?? chosenEdge(now, its);
    graph.light(told);
    const edge = typeof told === "number" ? strongestEdges(its)[told] : undefined;
    says.textContent = edge
      ? `${edgeInWords(run, edge)}.`
      : nodeInWords(run, its, typeof told === "string" ? told : now.head, first);
  };
  const graph = new Graph(app, say);
  const table = new EdgeTable(app, say);
  const all = h(
    "div",
    { class: "beside" },
    h(
      "section",
      { class: "adding", "aria-label": "The chosen edge or head" },
      says,
      h("label", { class: "slider" }, "Strongest edges ", slider, count),
    ),
    graph.element,
    h("section", { class: "summing", "aria-label": "What it keeps" }, figures, origin),
  );

  return analysisView<Circuited>(app, {
    className: "circuits",
    things: "Circuits of this model",
    of: (run) => run.circuit,
    update({ run, its }, now, before, element) {
      of = { run, its };
      const first = shownEdges(its, now.edges);
      if (!before) {
        graph.build(run, its);
        element.classList.toggle("broad", graph.columns() > broad);
        figures.replaceChildren(figuresList(its));
        origin.textContent =
          `${meaning} It was found in ${visible(its.model)}, with the precision ${visible(its.precision)}.` +
          (its.edges.length < its.edges_of_circuit ? ` The page has its ${its.edges.length} strongest edges.` : "");
        slider.max = String(its.edges.length);
        element.replaceChildren(all, table.element);
        requestAnimationFrame(() => graph.reveal(now.head));
      }
      slider.value = String(first);
      count.textContent = `${first} of ${its.edges.length}`;
      if (!before || before.edges !== now.edges) table.build(run, strongestEdges(its).slice(0, first));
      if (!before || before.edges !== now.edges || before.head !== now.head) graph.draw(its, first, now.head);
      table.choose(chosenEdge(now, its));
      say(null);
    },
  });
}
