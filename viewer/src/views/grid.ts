// The grid of thumbnails: layers x heads, a band for each kind of attention, and the finder above it.
import { columnOf, figuresOf, headOf, type App } from "../app";
import { hueOf, table } from "../draw/colours";
import { paint, pooled, pooledChange, rootsOf, side, signed } from "../draw/thumbnail";
import { arrowTo, h, inSlices, set } from "../dom";
import { bandsOf, type Found } from "../finder";
import type { Column } from "../evidence";
import { bandNames, figure, headNames, percent, placeInWords } from "../names";
import type { Attention, Run } from "../page";
import type { Choice } from "../state";
import type { HeadWeights } from "../weights";
import { headInWords } from "../words";

export function valueText(column: Column, value: number): string {
  return column.unit === "share" ? percent(value) : figure(value);
}

/** Draws a head's thumbnail; views that compare give their own. */
export type Painter = (canvas: HTMLCanvasElement, now: Choice, name: string) => void;

export function paintHead(app: App): Painter {
  return (canvas, now, name) => {
    const head = headOf(app, now, now.run, name);
    if (!head) return;
    const roots = app.weights.roots(head.place);
    const weights = roots ? null : app.weights.of(head.place);
    if (weights?.signed) {
      const small = pooledChange(signed(weights.a), weights.queries, weights.keys);
      return paint(canvas, small.cells, small.rows, small.columns, table("diverging", app.theme()));
    }
    const small = pooled(roots ?? rootsOf((weights as HeadWeights).a), head.maps.queries, head.maps.keys, side);
    paint(canvas, small.cells, small.rows, small.columns, table(hueOf(head.place.head), app.theme()));
  };
}

export class Grid {
  readonly element = h("section", { class: "grid", "aria-label": "All heads" });
  private readonly bands = h("div", { class: "bands" });
  private readonly select = h("select", {
    "aria-label": "Order heads by",
    change: () => this.app.choose({ by: this.select.value }),
  });
  private readonly letters = h("input", {
    type: "search",
    placeholder: "Name or role",
    "aria-label": "Find heads by name or role",
    autocomplete: "off",
    spellcheck: "false",
    input: () => this.app.choose({ name: this.letters.value }, "name"),
  });
  private readonly about = h("p", { class: "about" });
  private buttons = new Map<string, HTMLButtonElement>();
  private stop = () => {};

  constructor(
    private readonly app: App,
    private readonly painter: Painter,
    private readonly below: ((name: string, now: Choice) => Node) | null = null,
  ) {
    this.element.append(
      h("div", { class: "finder" }, h("label", {}, "Order by ", this.select), this.letters),
      this.about,
      this.bands,
    );
  }

  update(now: Choice, before: Choice | null): void {
    const run = this.app.page.runs[now.run] as Run;
    const anew = !before || before.run !== now.run || before.text !== now.text;
    if (anew) this.options(run);
    const by = now.by.replace(/^-/, "");
    if (this.select.value !== by) this.select.value = by;
    if (this.letters.value !== now.name) this.letters.value = now.name;
    if (anew || before.by !== now.by || before.name !== now.name) this.arrange(run, now, anew);
    for (const [name, button] of this.buttons) {
      set(button, "aria-pressed", name === now.head);
      button.tabIndex = name === now.head ? 0 : -1;
    }
  }

  private options(run: Run): void {
    const { all, relations } = figuresOf(run);
    const option = (one: Column) => h("option", { value: one.id }, one.title);
    const group = relations.length > 0 && h("optgroup", { label: "Relations" }, ...relations.map(option));
    this.select.replaceChildren(h("option", { value: "" }, "layer"), ...all.map(option), ...(group ? [group] : []));
  }

  private arrange(run: Run, now: Choice, anew: boolean): void {
    const focus = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.head : undefined;
    const column = columnOf(run, now.by);
    this.about.textContent = column
      ? `${column.about}; ${column.largest ? "largest" : "smallest"} first.`
      : "Rows are layers, columns heads; the stronger the colour, the more weight, on one scale.";
    if (anew && headNames(run).join() !== [...this.buttons.keys()].join()) this.buttons = new Map();
    const bands = bandsOf(run.attentions, column, now.name, (name) => headInWords(run, name));
    this.bands.replaceChildren(
      ...bands.map((band) => {
        const cells = h("div", { class: column ? "cells ordered" : "cells" });
        cells.style.setProperty("--columns", String(band.columns));
        const names = band.heads.map((one) => one.name);
        let layer = -1;
        for (const one of band.heads) {
          const of = run.attentions[one.attention] as Attention;
          if (!column && of.layer !== layer)
            cells.append(h("span", { class: "layer", "aria-hidden": "true" }, of.layer));
          layer = of.layer;
          cells.append(this.cell(run, one, column, names, band.columns));
        }
        const head =
          !column &&
          h(
            "div",
            { class: "cells heads", "aria-hidden": "true" },
            h("span", {}),
            ...Array.from({ length: band.columns }, (_, i) => h("span", {}, i)),
          );
        if (head) head.style.setProperty("--columns", String(band.columns));
        return h(
          "div",
          { class: "band", role: "group", "aria-label": bandNames[band.kind] },
          h("h3", {}, bandNames[band.kind]),
          head,
          cells,
        );
      }),
    );
    if (focus) this.buttons.get(focus)?.focus({ preventScroll: true });
    if (anew) this.paint(now);
  }

  private cell(run: Run, one: Found, column: Column | null, names: string[], columns: number): HTMLButtonElement {
    const of = run.attentions[one.attention] as Attention;
    let button = this.buttons.get(one.name);
    if (!button) {
      button = h(
        "button",
        { type: "button", "data-head": one.name, tabindex: -1, click: () => this.app.choose({ head: one.name }) },
        h("canvas", { width: 1, height: 1 }),
        h("span", { class: "value" }),
        this.below && h("span", { class: "below" }),
      );
      button.style.setProperty("--hue", String(hueOf(one.head)));
      this.buttons.set(one.name, button);
    }
    const words = headInWords(run, one.name);
    const value = column && one.value !== null ? valueText(column, one.value) : "";
    const place = placeInWords(of, one.head);
    const written = column ? `${of.layer}.${one.head} ${value}`.trim() : "";
    set(button, "aria-label", [written && `${written}, ${column?.title}`, place, words].filter(Boolean).join(": "));
    set(button, "title", words ? `${place}: ${words}` : place);
    button.classList.toggle("dim", one.dim);
    const span = button.querySelector(".value");
    if (span) span.textContent = written;
    if (this.below) button.querySelector(".below")?.replaceChildren(this.below(one.name, this.app.now()));
    button.onkeydown = (event) => {
      const to = arrowTo(event.key, names.indexOf(one.name), names.length, columns);
      if (to === null) return;
      event.preventDefault();
      const name = names[to] as string;
      this.app.choose({ head: name });
      this.buttons.get(name)?.focus();
    };
    return button;
  }

  /** Thumbnails come in idle slices, that of the chosen head first. */
  private paint(now: Choice): void {
    this.stop();
    const names = [now.head, ...[...this.buttons.keys()].filter((name) => name !== now.head)];
    const painter = this.painter;
    const buttons = this.buttons;
    const work = function* (): Generator<void> {
      for (const name of names) {
        const canvas = buttons.get(name)?.querySelector("canvas");
        if (canvas) painter(canvas, now, name);
        yield;
      }
    };
    this.stop = inSlices(work());
  }
}
