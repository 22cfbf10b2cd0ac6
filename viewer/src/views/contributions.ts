// A model's answer as a sum: what each head and layer adds, and the words that the chosen head took it from.
import type { App, Show } from "../app";
import type { Contributed } from "../contributed";
import {
  fullSquare,
  headAddsInWords,
  inSquare,
  meaningInWords,
  partBandsOf,
  sourcesOf,
  strongestOf,
  sumsOf,
  titleOfPart,
  type PartBand,
  type Square,
} from "../contributions";
import { css, diverging, inkOn, shade } from "../draw/colours";
import { arrowTo, h, set } from "../dom";
import { figure, visible } from "../names";
import { found, whyNone } from "../none";
import type { Run, Text } from "../page";
import type { Choice } from "../state";
import { fullScore } from "../written";
import { scoredLine } from "./scored";

const strongest = 8;

class Parts {
  readonly element = h("section", { class: "grid parts", "aria-label": "What each part adds" });
  private readonly bands = h("div", { class: "bands" });
  private buttons = new Map<string, HTMLButtonElement>();

  constructor(private readonly app: App) {}

  build(run: Run, its: Contributed): void {
    this.buttons = new Map();
    const full = fullSquare(its);
    this.element.replaceChildren(
      h(
        "p",
        { class: "about" },
        "Rows are layers, columns heads, and ff the feed-forward layer; blue adds, red takes away, on one scale.",
      ),
      this.bands,
    );
    this.bands.replaceChildren(...partBandsOf(run, its).map((band) => this.band(band, full)));
  }

  choose(head: string): void {
    const chosen = this.buttons.has(head) ? head : this.buttons.keys().next().value;
    for (const [name, button] of this.buttons) {
      set(button, "aria-pressed", name === head);
      button.tabIndex = name === chosen ? 0 : -1;
    }
  }

  /** Many layers do not fit: those around the head are what is seen first. */
  reveal(head: string): void {
    const button = this.buttons.get(head);
    if (button) this.bands.scrollTop = button.offsetTop - this.bands.clientHeight / 2;
  }

  private band({ title, columns, hasFeedForward, layers }: PartBand, full: number): HTMLElement {
    const names = layers.flatMap((layer) => layer.heads.map((one) => one.name));
    const heads = [...Array(columns).keys(), ...(hasFeedForward ? ["ff"] : [])];
    const above = h(
      "div",
      { class: "cells heads", "aria-hidden": "true" },
      h("span", {}),
      ...heads.map((name) => h("span", {}, name)),
    );
    const cells = h(
      "div",
      { class: "cells" },
      ...layers.flatMap((layer) => [
        h("span", { class: "layer", "aria-hidden": "true" }, layer.layer),
        ...layer.heads.map((one) => this.head(one, full, names, columns)),
        layer.feedForward &&
          this.square(layer.feedForward, full, {
            class: "square ff",
            role: "img",
            "aria-label": labelOf(layer.feedForward, full),
            "data-part": layer.feedForward.name,
          }),
      ]),
    );
    for (const one of [above, cells]) one.style.setProperty("--columns", String(heads.length));
    return h("div", { class: "band", role: "group", "aria-label": title }, h("h3", {}, title), above, cells);
  }

  private head(one: Square, full: number, names: string[], columns: number): HTMLButtonElement {
    const button = h(
      "button",
      {
        type: "button",
        "data-head": one.name,
        "data-adds": one.value,
        "aria-label": labelOf(one, full),
        tabindex: -1,
        click: () => this.app.choose({ head: one.name }),
        keydown: (event: KeyboardEvent) => {
          const to = arrowTo(event.key, names.indexOf(one.name), names.length, columns);
          if (to === null) return;
          event.preventDefault();
          const name = names[to] as string;
          this.app.choose({ head: name });
          this.buttons.get(name)?.focus();
        },
      },
      this.square(one, full, { class: "square", "aria-hidden": "true" }),
    );
    this.buttons.set(one.name, button);
    return button;
  }

  private square(one: Square, full: number, attributes: { [name: string]: string }): HTMLElement {
    const element = h(
      "span",
      { ...attributes, title: `${one.title}: ${figure(one.value)}` },
      h("span", {}, inSquare(one.value, full)),
    );
    const colour = diverging(Math.sign(one.value) * shade(Math.abs(one.value), full), this.app.theme());
    element.style.background = css(colour);
    element.style.color = inkOn(colour);
    return element;
  }
}

/** What a square is called: with the figure that stands in it. */
const labelOf = (one: Square, full: number): string => `${one.title}: ${inSquare(one.value, full)}`;

function sumTable(its: Contributed): HTMLElement {
  const rows = sumsOf(its).map(({ title, value }) =>
    h("tr", {}, h("th", { scope: "row" }, title), h("td", {}, figure(value))),
  );
  return h("table", { class: "figures sums totals" }, h("tbody", {}, ...rows));
}

function strongestTable(app: App, run: Run, its: Contributed): HTMLElement {
  const rows = strongestOf(its, strongest).map((part) => {
    const title = titleOfPart(run, part);
    const name =
      part.kind === "head"
        ? h(
            "button",
            {
              type: "button",
              class: "link",
              "data-go": part.name,
              click: () => app.choose({ head: part.name, key: null }),
            },
            title,
          )
        : title;
    return h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, figure(part.sum ?? Number.NaN)));
  });
  return h("table", { class: "figures sums" }, h("tbody", {}, ...rows));
}

export function contributionsView(app: App): Show {
  const parts = new Parts(app);
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
  const element = h("div", { class: "view contributions" });

  const tell = (now: Choice, run: Run, of: Text, its: Contributed) => {
    adds.textContent = headAddsInWords(run, its, now.head);
    const read = sourcesOf(of, its, now.head);
    sources.replaceChildren(
      ...(read
        ? [
            h("p", { class: "quiet" }, "It took that from these words, by its weights and their values:"),
            scoredLine(read, fullScore(read), app.theme()),
          ]
        : []),
    );
  };

  return {
    element,
    update(now, before) {
      const run = app.page.runs[now.run] as Run;
      const of = run.texts[now.text] as Text;
      const anew = !before || before.run !== now.run || before.text !== now.text;
      const its = found<Contributed>(of.contributions);
      if (!its) {
        element.replaceChildren(h("p", {}, visible(whyNone(of.contributions, "Contributions") ?? "")));
        return;
      }
      if (anew) {
        parts.build(run, its);
        sums.replaceChildren(
          h("section", {}, h("h2", {}, "The sum"), sumTable(its)),
          h("section", {}, h("h2", {}, "Parts that count most"), strongestTable(app, run, its)),
        );
        meaning.textContent = meaningInWords(its);
        element.replaceChildren(all);
      }
      parts.choose(now.head);
      if (anew || before.head !== now.head) tell(now, run, of, its);
      if (anew) requestAnimationFrame(() => parts.reveal(now.head));
    },
  };
}
