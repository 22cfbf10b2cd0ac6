// Retrieval heads: a square for each head, and where the chosen one finds the fact.
import type { App, Show } from "../app";
import { css, diverging, inkOn, shade } from "../draw/colours";
import { h } from "../dom";
import type { Retrieved } from "../given";
import { figure, percent, visible } from "../names";
import { titleOfNode } from "../node";
import type { Run } from "../page";
import {
  bestHeads,
  headCopiesInWords,
  meaningOfRetrieval,
  needInWords,
  needOf,
  placeTable,
  scoreBandsOf,
  scoresByPlace,
} from "../retrieval";
import type { Figure } from "../reader";
import { analysisView } from "./analysed";
import { figuresTable, type TableRow } from "./figurestable";
import { headLink } from "./links";
import { Squares } from "./squares";

const best = 10;

/** Lengths by depths: what is copied, or said, at each. */
function placesTable(app: App, its: Retrieved, values: Figure[], title: string, about: string): HTMLElement {
  const { depths, rows } = placeTable(its, values);
  const cell = (value: Figure) => {
    const found = h("td", { "data-share": value }, value === null ? "–" : percent(value));
    const colour = diverging(shade(value ?? 0), app.theme());
    found.style.background = css(colour);
    found.style.color = inkOn(colour);
    return found;
  };
  const columns = depths.map((depth) => h("th", { scope: "col" }, `at ${depth}`));
  const lines = rows.map(({ length, values: own }) => h("tr", {}, h("th", { scope: "row" }, length), ...own.map(cell)));
  const top = h("tr", {}, h("th", { scope: "col" }, "tokens"), ...columns);
  return h(
    "section",
    {},
    h("h2", {}, title),
    h("p", { class: "quiet" }, about),
    h(
      "div",
      { class: "wide" },
      h("table", { class: "figures places", "aria-label": title }, h("thead", {}, top), h("tbody", {}, ...lines)),
    ),
  );
}

function bestTable(app: App, run: Run, its: Retrieved): HTMLElement {
  const limited = its.limited.length > 0;
  const rows = bestHeads(its, best).map(({ head, score, weight }): TableRow => {
    const share = h("td", {}, percent(score ?? Number.NaN));
    share.style.setProperty("--part", `${Math.round(100 * (score ?? 0))}%`);
    const need = needOf(its, head);
    return [
      headLink(app, head, titleOfNode(run, head)),
      share,
      percent(weight ?? Number.NaN),
      ...(limited ? [need ? figure(need.fall ?? Number.NaN) : ""] : []),
    ];
  });
  return figuresTable(["head", "copies", "weight", ...(limited ? ["fall, nats"] : [])], rows);
}

function needles({ needles: all }: Retrieved): HTMLElement {
  return h(
    "details",
    {},
    h("summary", {}, all.length === 1 ? "The fact" : `The ${all.length} facts`),
    h(
      "ul",
      { class: "links" },
      ...all.map(({ sentence, question, answer }) =>
        h("li", {}, `${visible(sentence)} `, h("small", {}, visible(question), " → ", h("b", {}, visible(answer)))),
      ),
    ),
  );
}

export function retrievalView(app: App): Show {
  const squares = new Squares(
    app,
    "What each head copies",
    "Rows are layers, columns heads; the deeper the colour, the more of the answers' tokens a head copies.",
    "data-copies",
  );
  const copies = h("p", { class: "adds", "aria-live": "polite" });
  const need = h("p", {});
  const own = h("div", { class: "sides" });
  const whole = h("div", { class: "sides" });
  const all = h(
    "div",
    { class: "beside" },
    h("section", { class: "adding", "aria-label": "What the chosen head copies" }, copies, need),
    squares.element,
    h("section", { class: "summing", "aria-label": "Where it copies, and other heads" }, own, whole),
  );

  return analysisView<Retrieved>(app, {
    className: "retrieval",
    things: "Retrieval heads of this model",
    of: (run) => run.retrieval,
    update({ run, its }, now, before, element) {
      if (!before) {
        squares.build(scoreBandsOf(run, its), 1);
        const exact = its.places.map((place) => place.exact);
        whole.replaceChildren(
          h("h2", {}, "Heads that copy most"),
          h("div", { class: "wide" }, bestTable(app, run, its)),
          placesTable(
            app,
            its,
            exact,
            "Answers that the model says",
            `Word for word; of all texts ${percent(its.exact ?? 0)}.`,
          ),
          h(
            "p",
            { class: "quiet" },
            `${meaningOfRetrieval(its)} Measured in ${visible(its.model)}, ` +
              `with the precision ${visible(its.precision)}.`,
          ),
          needles(its),
        );
        element.replaceChildren(all);
        requestAnimationFrame(() => squares.reveal(now.head));
      }
      squares.choose(now.head);
      if (before?.head === now.head) return;
      copies.textContent = headCopiesInWords(run, its, now.head);
      need.textContent = needInWords(its, now.head);
      own.replaceChildren(
        placesTable(
          app,
          its,
          scoresByPlace(its, now.head),
          "Where it copies",
          "By the length of the text and the depth of the fact: 0 at the beginning, 1 right before the question.",
        ),
      );
    },
  });
}
