// A small table of figures: a name before each row, which is often a head to be chosen.
import { h, type Child } from "../dom";

/** A name, then its figures: as text, or as cells that are drawn in their own way. */
export type TableRow = [name: Child, ...figures: (string | HTMLTableCellElement)[]];

export function figuresTable(titles: string[], rows: TableRow[]): HTMLTableElement {
  const row = ([name, ...figures]: TableRow) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      ...figures.map((one) => (typeof one === "string" ? h("td", {}, one) : one)),
    );
  return h(
    "table",
    { class: "figures best" },
    h("thead", {}, h("tr", {}, ...titles.map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", {}, ...rows.map(row)),
  );
}
