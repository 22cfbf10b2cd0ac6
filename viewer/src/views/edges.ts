// The edges of a circuit as a table, the strongest first.
import type { App } from "../app";
import { edgeTitles, intervalInWords, tabbedEdges } from "../circuit";
import { h, set } from "../dom";
import type { CircuitEdge } from "../given";
import { figure } from "../names";
import type { Run } from "../page";
import { inputKinds } from "./graph";
import { copyButton } from "./links";

export class EdgeTable {
  private readonly table = h("table", { class: "figures edges" });
  private readonly copied: ReturnType<typeof copyButton>;
  readonly element: HTMLElement;
  private rows: HTMLTableRowElement[] = [];
  private shown: CircuitEdge[] = [];

  constructor(
    private readonly app: App,
    private readonly say: (of: number | null) => void,
  ) {
    this.copied = copyButton(() => tabbedEdges(this.shown));
    const scroll = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Its edges" }, this.table);
    this.element = h("section", {}, h("h2", {}, "Its edges"), this.copied.element, scroll);
  }

  build(run: Run, edges: CircuitEdge[]): void {
    this.shown = edges;
    this.copied.quiet();
    const measured = edges.some(({ effect }) => effect !== null);
    const most = Math.abs(edges[0]?.score ?? 0) || 1;
    this.rows = edges.map((edge, number) => {
      const [from, to] = edgeTitles(run, edge);
      const choose = () => this.app.choose({ cell: `edge:${number}` });
      const button = h("button", { type: "button", "data-edge": number, click: choose }, from);
      const score = h("td", {}, figure(edge.score ?? Number.NaN));
      score.style.setProperty("--part", `${Math.round((100 * Math.abs(edge.score ?? 0)) / most)}%`);
      return h(
        "tr",
        {
          pointerenter: () => this.say(number),
          pointerleave: () => this.say(null),
          focusin: () => this.say(number),
          focusout: () => this.say(null),
        },
        h("th", { scope: "row" }, button),
        h("td", { class: "to" }, h("span", { class: inputKinds[edge.input] }, to)),
        score,
        measured && h("td", {}, edge.effect ? intervalInWords(edge.effect) : ""),
      );
    });
    const titles = ["from", "to", "score", ...(measured ? ["effect"] : [])];
    this.table.replaceChildren(
      h("thead", {}, h("tr", {}, ...titles.map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, ...this.rows),
    );
  }

  choose(number: number | null): void {
    this.rows.forEach((row, i) => {
      set(row, "aria-selected", i === number);
    });
  }
}
