// One head in full.
import { headOf, shownOf, type App, type Show } from "../app";
import { hueOf } from "../draw/colours";
import { h } from "../dom";
import { groupOf, type Group } from "../merge";
import { figure, headNames, percent, shown } from "../names";
import type { Run, Tokens } from "../page";
import { Known } from "./known";
import { Matrix } from "./matrix";
import { Pair } from "./pair";
import { RunningText } from "./running";
import { Toggles } from "./toggles";

export const labelsOf = (tokens: Tokens, groups: Group[]): string[] =>
  groups.map((group) =>
    tokens.tokens
      .slice(group.first, group.last + 1)
      .map((token) => shown(token.label, 24))
      .join(""),
  );

export function headView(app: App): Show {
  const running = new RunningText(app);
  const toggles = new Toggles(app);
  const matrix = new Matrix("Weights");
  const pair = new Pair(app);
  const known = new Known(app);
  const go = (by: number) => {
    const names = headNames(app.page.runs[app.now().run] as Run);
    const at = names.indexOf(app.now().head);
    app.choose({ head: names[(at + by + names.length) % names.length] as string, key: null });
  };
  const element = h(
    "div",
    { class: "view one-head" },
    h(
      "div",
      { class: "above" },
      h(
        "button",
        { type: "button", class: "plain", "data-do": "previous-head", click: () => go(-1) },
        "← Previous head",
      ),
      h("button", { type: "button", class: "plain", "data-do": "next-head", click: () => go(1) }, "Next head →"),
      toggles.element,
    ),
    h(
      "div",
      { class: "columns" },
      h("section", { "aria-label": "The text" }, running.element, pair.element),
      h("section", { "aria-label": "The matrix" }, matrix.element),
    ),
    known.element,
  );
  return {
    element,
    update(now, before) {
      const head = headOf(app, now);
      if (!head) return;
      running.update(now);
      toggles.update(now);
      const view = shownOf(app, now, head);
      matrix.show({
        map: view.map,
        rows: labelsOf(head.queries, view.queries),
        columns: labelsOf(head.keys, view.keys),
        full: view.full,
        hue: view.signed ? "diverging" : hueOf(head.place.head),
        theme: app.theme(),
        row: groupOf(view.queries, now.query),
        column: now.key === null ? null : groupOf(view.keys, now.key),
        write: now.lengths ? figure : percent,
        choose: (row, column) =>
          app.choose({ query: (view.queries[row] as Group).first, key: (view.keys[column] as Group).first }),
      });
      pair.update(now);
      if (!before || before.head !== now.head || before.run !== now.run) known.update(now);
    },
  };
}
