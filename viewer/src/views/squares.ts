// A grid of squares with a figure of each head and feed-forward layer, by layer: blue above 0, red below.
import type { App } from "../app";
import { inSquare, type PartBand, type Square } from "../contributions";
import { css, diverging, inkOn, shade } from "../draw/colours";
import { arrowTo, h, set } from "../dom";
import { figure } from "../names";

export class Squares {
  readonly element: HTMLElement;
  private readonly bands = h("div", { class: "bands" });
  private buttons = new Map<string, HTMLButtonElement>();
  private full = 1;
  /** What is drawn: figures of the same heads only change their colours. */
  private drawn = "";

  /** attribute: where a head's button has its figure. */
  constructor(
    private readonly app: App,
    label: string,
    about: string,
    private readonly attribute: string,
  ) {
    this.element = h(
      "section",
      { class: "grid parts", "aria-label": label },
      h("p", { class: "about" }, about),
      this.bands,
    );
  }

  /** full: of the deepest colour. */
  build(bands: PartBand[], full: number): void {
    this.full = full;
    const heads = bands.flatMap((band) => band.layers.flatMap((layer) => layer.heads));
    const drawn = heads.map(({ name }) => name).join(" ");
    const only = bands.every((band) => !band.hasFeedForward);
    if (only && drawn === this.drawn) {
      for (const one of heads) this.repaint(one);
      return;
    }
    this.drawn = drawn;
    this.buttons = new Map();
    this.bands.replaceChildren(...bands.map((band) => this.band(band)));
  }

  private repaint(one: Square): void {
    const button = this.buttons.get(one.name);
    const square = button?.firstElementChild;
    if (!button || !(square instanceof HTMLElement)) return;
    set(button, this.attribute, String(one.value ?? ""));
    set(button, "aria-label", this.labelOf(one));
    this.paint(square, one);
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

  private band({ title, columns, hasFeedForward, layers }: PartBand): HTMLElement {
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
        ...layer.heads.map((one) => this.head(one, names, columns)),
        layer.feedForward &&
          this.square(layer.feedForward, {
            class: "square ff",
            role: "img",
            "aria-label": this.labelOf(layer.feedForward),
            "data-part": layer.feedForward.name,
          }),
      ]),
    );
    for (const one of [above, cells]) one.style.setProperty("--columns", String(heads.length));
    return h("div", { class: "band", role: "group", "aria-label": title }, h("h3", {}, title), above, cells);
  }

  private head(one: Square, names: string[], columns: number): HTMLButtonElement {
    const button = h(
      "button",
      {
        type: "button",
        "data-head": one.name,
        [this.attribute]: one.value ?? "",
        "aria-label": this.labelOf(one),
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
      this.square(one, { class: "square", "aria-hidden": "true" }),
    );
    this.buttons.set(one.name, button);
    return button;
  }

  /** What a square is called: with the figure that stands in it. */
  private labelOf(one: Square): string {
    const value = one.value === null ? one.title : `${one.title}: ${inSquare(one.value, this.full)}`;
    return [value, one.framed].filter(Boolean).join(", ");
  }

  private square(one: Square, attributes: { [name: string]: string }): HTMLElement {
    const element = h("span", attributes, h("span", {}));
    this.paint(element, one);
    return element;
  }

  private paint(element: HTMLElement, one: Square): void {
    const value = one.value ?? 0;
    const title = one.value === null ? one.title : `${one.title}: ${figure(value)}`;
    set(element, "title", [title, one.framed].filter(Boolean).join(", "));
    (element.firstElementChild as HTMLElement).textContent = one.value === null ? "" : inSquare(value, this.full);
    const colour = diverging(Math.sign(value) * shade(Math.abs(value), this.full), this.app.theme());
    element.style.backgroundColor = css(colour);
    element.style.color = inkOn(colour);
    element.classList.toggle("framed", one.framed !== undefined);
  }
}
