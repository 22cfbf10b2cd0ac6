// A model's answer as a sum: what each head and layer adds, and the words that the chosen head took it from.
import type { App, Show } from "../app";
import type { Contributed } from "../contributed";
import {
  fullSquare,
  headAddsInWords,
  meaningInWords,
  partBandsOf,
  sourcesOf,
  strongestOf,
  sumsOf,
  titleOfPart,
} from "../contributions";
import { h } from "../dom";
import { figure } from "../names";
import type { Run } from "../page";
import { fullScore } from "../written";
import { type Analysed, analysisView } from "./analysed";
import { headLink } from "./links";
import { scoredLine } from "./scored";
import { Squares } from "./squares";

const strongest = 8;

function sumTable(its: Contributed): HTMLElement {
  const rows = sumsOf(its).map(({ title, value }) =>
    h("tr", {}, h("th", { scope: "row" }, title), h("td", {}, figure(value))),
  );
  return h("table", { class: "figures sums totals" }, h("tbody", {}, ...rows));
}

function strongestTable(app: App, run: Run, its: Contributed): HTMLElement {
  const rows = strongestOf(its, strongest).map((part) => {
    const title = titleOfPart(run, part);
    const name = part.kind === "head" ? headLink(app, part.name, title) : title;
    return h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, figure(part.sum ?? Number.NaN)));
  });
  return h("table", { class: "figures sums" }, h("tbody", {}, ...rows));
}

export function contributionsView(app: App): Show {
  const parts = new Squares(
    app,
    "What each part adds",
    "Rows are layers, columns heads, and ff the feed-forward layer; blue adds, red takes away, on one scale.",
    "data-adds",
  );
  const adds = h("p", { class: "adds", "aria-live": "polite" });
  const sources = h("div", { class: "sources" });
  const sums = h("div", { class: "columns sides" });
  const meaning = h("p", { class: "quiet" });
  const all = h(
    "div",
    { class: "beside" },
    h("section", { class: "adding", "aria-label": "What the chosen head adds" }, adds, sources),
    parts.element,
    h("section", { class: "summing", "aria-label": "What all parts add" }, sums, meaning),
  );

  const tell = ({ run, text, its }: Analysed<Contributed>, head: string) => {
    adds.textContent = headAddsInWords(run, its, head);
    const read = sourcesOf(text, its, head);
    sources.replaceChildren(
      ...(read
        ? [
            h("p", { class: "quiet" }, "It took that from these words, by its weights and their values:"),
            scoredLine(read, fullScore(read), app.theme()),
          ]
        : []),
    );
  };

  return analysisView<Contributed>(app, {
    className: "contributions",
    things: "Contributions",
    of: (_, text) => text.contributions,
    update(analysed, now, before, element) {
      const { run, its } = analysed;
      if (!before) {
        parts.build(partBandsOf(run, its), fullSquare(its));
        sums.replaceChildren(
          h("section", {}, h("h2", {}, "The sum"), sumTable(its)),
          h("section", {}, h("h2", {}, "Parts that count most"), strongestTable(app, run, its)),
        );
        meaning.textContent = meaningInWords(its);
        element.replaceChildren(all);
        requestAnimationFrame(() => parts.reveal(now.head));
      }
      parts.choose(now.head);
      if (before?.head !== now.head) tell(analysed, now.head);
    },
  });
}
