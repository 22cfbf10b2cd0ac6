// The figures of all heads as a table that can be sorted and copied.
import { columnOf, figuresOf, type App, type Show } from "../app";
import type { Column } from "../evidence";
import { h, set } from "../dom";
import { headNames } from "../names";
import type { Run } from "../page";
import type { Choice } from "../state";
import { headInWords } from "../words";
import { valueText } from "./grid";
import { copyButton } from "./links";

/** Heads in the order of a column; those without a figure last. */
export function ordered(run: Run, column: Column | null): string[] {
  const names = headNames(run);
  if (!column) return names;
  const sign = column.largest ? -1 : 1;
  const value = (name: string) => column.values.get(name);
  return names.sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === undefined || y === undefined) return (x === undefined ? 1 : 0) - (y === undefined ? 1 : 0);
    return sign * (x - y);
  });
}

/** The table as text with tabs, the figures in full. */
export function tabbed(run: Run, columns: Column[], names: string[]): string {
  const rows = names.map((name) =>
    [name, ...columns.map((one) => String(one.values.get(name) ?? "")), headInWords(run, name)].join("\t"),
  );
  return [["head", ...columns.map((one) => one.title), "in words"].join("\t"), ...rows].join("\n");
}

export function tableView(app: App): Show {
  const table = h("table", { class: "figures" });
  const copied = copyButton(() => {
    const run = app.page.runs[app.now().run] as Run;
    const { all } = figuresOf(run);
    return tabbed(run, all, ordered(run, columnOf(run, app.now().by)));
  });
  let rows = new Map<string, HTMLTableRowElement>();
  const element = h(
    "div",
    { class: "view" },
    copied.element,
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Figures of all heads" }, table),
  );

  const build = (now: Choice) => {
    const run = app.page.runs[now.run] as Run;
    const { all } = figuresOf(run);
    const column = columnOf(run, now.by);
    const most = new Map(
      all.map((one) => [one.id, one.unit === "share" ? 1 : Math.max(...[...one.values.values()].map(Math.abs)) || 1]),
    );
    const title = (id: string, label: string, about: string) =>
      h(
        "th",
        {
          scope: "col",
          "aria-sort":
            now.by === id || now.by === `-${id}` ? (column?.largest === false ? "ascending" : "descending") : "none",
        },
        h(
          "button",
          {
            type: "button",
            title: about,
            "data-sort": id || "head",
            click: () => app.choose({ by: now.by === id && id !== "" ? `-${id}` : id }),
          },
          label,
        ),
      );
    rows = new Map(
      ordered(run, column).map((name) => {
        const cells = all.map((one) => {
          const value = one.values.get(name);
          const cell = h("td", {}, value === undefined ? "" : valueText(one, value));
          if (value !== undefined)
            cell.style.setProperty("--part", `${Math.round((100 * Math.abs(value)) / (most.get(one.id) as number))}%`);
          return cell;
        });
        const row = h(
          "tr",
          {},
          h(
            "th",
            { scope: "row" },
            h("button", { type: "button", "data-row": name, click: () => app.choose({ head: name }) }, name),
          ),
          h("td", { class: "words" }, h("bdi", {}, headInWords(run, name))),
          ...cells,
        );
        return [name, row];
      }),
    );
    const focus = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.sort : undefined;
    table.replaceChildren(
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          title("", "head", "In the order of the model"),
          h("th", { scope: "col", class: "words" }, "in words"),
          ...all.map((one) => title(one.id, one.title, one.about)),
        ),
      ),
      h("tbody", {}, ...rows.values()),
    );
    if (focus) table.querySelector<HTMLElement>(`[data-sort="${CSS.escape(focus)}"]`)?.focus();
  };

  table.addEventListener("keydown", (event) => {
    const name = event.target instanceof HTMLElement ? event.target.dataset.row : undefined;
    if (!name || (event.key !== "ArrowDown" && event.key !== "ArrowUp")) return;
    const names = [...rows.keys()];
    const to = names[names.indexOf(name) + (event.key === "ArrowDown" ? 1 : -1)];
    if (!to) return;
    event.preventDefault();
    rows.get(to)?.querySelector("button")?.focus();
    app.choose({ head: to });
  });

  return {
    element,
    update(now, before) {
      if (!before || before.run !== now.run || before.by !== now.by) build(now);
      copied.quiet();
      for (const [name, row] of rows) set(row, "aria-selected", name === now.head);
    },
  };
}
