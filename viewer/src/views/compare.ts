// The same head in two models or checkpoints, and the difference.
import { headOf, shownOf, type App, type Chosen, type Show, type Shown } from "../app";
import { hueOf, table } from "../draw/colours";
import { paint, pooledChange, signed } from "../draw/thumbnail";
import { arrowTo, h, inSlices, set } from "../dom";
import { change, difference, groupOf, type Group } from "../merge";
import { findHead, headNames, percent, placeInWords, shown, visible } from "../names";
import type { Attention, Run } from "../page";
import type { Choice } from "../state";
import { labelsOf } from "./head";
import { Matrix } from "./matrix";
import { Toggles } from "./toggles";

const points = (value: number): string =>
  `${value > 0 ? "+" : ""}${(100 * value).toFixed(Math.abs(value) < 0.095 ? 1 : 0)} points`.replace("-", "−");

class CompareView implements Show {
  private readonly a = new Matrix("A", 320);
  private readonly b = new Matrix("B", 320);
  private readonly minus = new Matrix("A − B", 320);
  private readonly titles = [h("h2", {}), h("h2", {}), h("h2", {}, "A − B")] as const;
  private readonly other = h("select", {
    "aria-label": "Compare with",
    change: () => this.app.choose({ other: Number(this.other.value) }),
  });
  private readonly said = h("p", { class: "quiet" });
  private readonly keys = h("div", {});
  private readonly cells = h("div", { class: "cells ordered" });
  private readonly toggles: Toggles;
  private readonly three = h(
    "div",
    { class: "three" },
    ...[this.a, this.b, this.minus].map((matrix, i) => h("section", {}, this.titles[i], matrix.element)),
  );
  readonly element: HTMLElement;
  private stop = () => {};
  private buttons = new Map<string, HTMLButtonElement>();

  constructor(private readonly app: App) {
    this.toggles = new Toggles(app);
    this.other.append(...app.page.runs.map((run, i) => h("option", { value: i }, visible(run.name))));
    this.element = h(
      "div",
      { class: "view compare" },
      h("div", { class: "above" }, h("label", {}, "Compare with ", this.other), this.toggles.element),
      this.said,
      this.three,
      h(
        "div",
        { class: "columns" },
        this.keys,
        h(
          "section",
          { "aria-label": "Heads by change" },
          h("h2", {}, "Heads by change"),
          h(
            "p",
            { class: "about" },
            "How much of the weight is elsewhere in the other, the most first. Blue: more in A; orange: more in B.",
          ),
          this.cells,
        ),
      ),
    );
  }

  update(now: Choice, before: Choice | null): void {
    this.other.value = String(now.other);
    this.toggles.update(now);
    const [a, b] = [headOf(this.app, now), headOf(this.app, now, now.other)];
    if (!a) return;
    const name = (run: number) => visible((this.app.page.runs[run] as Run).name);
    this.titles[0].replaceChildren("A: ", h("bdi", {}, name(now.run)));
    this.titles[1].replaceChildren("B: ", h("bdi", {}, name(now.other)));
    const alike =
      b !== null &&
      b.maps.queries === a.maps.queries &&
      b.maps.keys === a.maps.keys &&
      a.queries.tokens.every((token, i) => token.token === b.queries.tokens[i]?.token);
    this.said.textContent =
      b === null
        ? `${name(now.other)} has no such head.`
        : alike
          ? ""
          : "Both read this text as other tokens, so that there is no difference to show.";
    const first = shownOf(this.app, now, a);
    this.matrix(this.a, now, a, first, first.map.values, hueOf(a.place.head), first.full);
    const second = b && shownOf(this.app, now, b);
    (this.b.element.parentElement as HTMLElement).hidden = !b;
    if (b && second) this.matrix(this.b, now, b, second, second.map.values, hueOf(a.place.head), second.full);
    const less = second && alike ? difference(first.map, second.map) : null;
    (this.minus.element.parentElement as HTMLElement).hidden = less === null;
    if (less) this.matrix(this.minus, now, a, first, less.values, "diverging", Math.max(first.full, second?.full ?? 1));
    this.reads(now, a, first, less ? (second as Shown) : null);
    if (!before || before.run !== now.run || before.other !== now.other || before.text !== now.text) this.changes(now);
    for (const [head, button] of this.buttons) {
      set(button, "aria-pressed", head === now.head);
      button.tabIndex = head === now.head ? 0 : -1;
    }
  }

  private matrix(
    matrix: Matrix,
    now: Choice,
    head: Chosen,
    view: Shown,
    values: Float32Array,
    hue: number | "diverging",
    full: number,
  ): void {
    matrix.show({
      map: { ...view.map, values },
      rows: labelsOf(head.queries, view.queries),
      columns: labelsOf(head.keys, view.keys),
      full,
      hue,
      theme: this.app.theme(),
      row: groupOf(view.queries, Math.min(now.query, head.queries.tokens.length - 1)),
      column: now.key === null || now.key >= head.keys.tokens.length ? null : groupOf(view.keys, now.key),
      write: hue === "diverging" ? points : percent,
      choose: (row, column) =>
        this.app.choose({ query: (view.queries[row] as Group).first, key: (view.keys[column] as Group).first }),
    });
  }

  /** The word in focus in both. */
  private reads(now: Choice, head: Chosen, a: Shown, b: Shown | null): void {
    const row = groupOf(a.queries, now.query);
    const of = (view: Shown) => view.map.values.subarray(row * view.map.columns, (row + 1) * view.map.columns);
    const [wa, wb] = [of(a), b && of(b)];
    const size = (j: number) => Math.max(wa[j] as number, wb ? (wb[j] as number) : 0);
    const best = [...wa.keys()]
      .sort((x, y) => size(y) - size(x))
      .slice(0, 8)
      .filter((j) => size(j) > 0);
    const labels = labelsOf(head.keys, a.keys);
    set(this.keys, "data-weights", JSON.stringify({ head: now.head, query: now.query, weights: [...wa] }));
    this.keys.replaceChildren(
      h(
        "table",
        { class: "figures keys" },
        h(
          "caption",
          {},
          "What ",
          h("bdi", { class: "word" }, shown(labelsOf(head.queries, a.queries)[row] ?? "", 24)),
          " reads",
        ),
        h(
          "thead",
          {},
          h("tr", {}, ...["key", "A", ...(wb ? ["B", "A − B"] : [])].map((one) => h("th", { scope: "col" }, one))),
        ),
        h(
          "tbody",
          {},
          ...best.map((j) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, h("bdi", {}, labels[j])),
              h("td", {}, percent(wa[j] as number)),
              wb && h("td", {}, percent(wb[j] as number)),
              wb && h("td", {}, points((wa[j] as number) - (wb[j] as number))),
            ),
          ),
        ),
      ),
    );
  }

  /** All heads that both have, by how much their weights differ; worked out in idle slices. */
  private changes(now: Choice): void {
    this.stop();
    this.cells.replaceChildren(h("p", { class: "quiet" }, "Comparing…"));
    const { app } = this;
    const run = app.page.runs[now.run] as Run;
    const found: { name: string; by: number; canvas: HTMLCanvasElement }[] = [];
    const finish = () =>
      this.list(
        run,
        found.sort((x, y) => y.by - x.by),
      );
    const work = function* (): Generator<void> {
      for (const name of headNames(run)) {
        const [a, b] = [headOf(app, now, now.run, name), headOf(app, now, now.other, name)];
        if (a && b && a.maps.queries === b.maps.queries && a.maps.keys === b.maps.keys) {
          const [wa, wb] = [app.weights.of(a.place), app.weights.of(b.place)];
          const less = difference(
            { rows: wa.queries, columns: wa.keys, values: wa.a },
            { rows: wb.queries, columns: wb.keys, values: wb.a },
          );
          const canvas = h("canvas", {});
          if (less) {
            const small = pooledChange(signed(less.values), less.rows, less.columns);
            paint(canvas, small.cells, small.rows, small.columns, table("diverging", app.theme()));
          }
          found.push({ name, by: change(wa.a, wb.a, wa.queries), canvas });
        }
        yield;
      }
      finish();
    };
    this.stop = inSlices(work());
  }

  private list(run: Run, found: { name: string; by: number; canvas: HTMLCanvasElement }[]): void {
    const now = this.app.now();
    const names = found.map((one) => one.name);
    this.buttons = new Map(
      found.map(({ name, by, canvas }) => {
        const at = findHead(run, name) as { attention: number; head: number };
        const of = run.attentions[at.attention] as Attention;
        const button = h(
          "button",
          {
            type: "button",
            "data-head": name,
            "aria-pressed": String(name === now.head),
            tabindex: name === now.head ? 0 : -1,
            title: placeInWords(of, at.head),
            "aria-label": `${of.layer}.${at.head} ${percent(by)} changed: ${placeInWords(of, at.head)}`,
            click: () => this.app.choose({ head: name }),
            keydown: (event: KeyboardEvent) => {
              const wide = getComputedStyle(this.cells).gridTemplateColumns.split(" ").length;
              const to = arrowTo(event.key, names.indexOf(name), names.length, wide);
              if (to === null) return;
              event.preventDefault();
              this.app.choose({ head: names[to] as string });
              this.buttons.get(names[to] as string)?.focus();
            },
          },
          canvas,
          h("span", { class: "value" }, `${of.layer}.${at.head} ${percent(by)}`),
        );
        return [name, button];
      }),
    );
    this.cells.replaceChildren(
      ...(found.length > 0
        ? this.buttons.values()
        : [h("p", { class: "quiet" }, "The two have no heads in common that read the same tokens.")]),
    );
  }
}

export const compareView = (app: App): Show => new CompareView(app);
