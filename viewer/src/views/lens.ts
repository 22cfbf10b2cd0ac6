// What the model would say if it stopped after a layer: places by tokens, a cell for each.
import type { App, Show } from "../app";
import { css, diverging, inkOn, shade } from "../draw/colours";
import { arrowTo, h, set } from "../dom";
import {
  cellInWords,
  choiceOfCell,
  focusOf,
  lensTableOf,
  type LensCell,
  type LensFocus,
  type LensRow,
  type LensTable,
} from "../lens";
import type { Lensed } from "../lensed";
import type { Run, Text } from "../page";
import { analysisView } from "./analysed";

class Lens {
  private readonly says = h("p", { class: "says", "aria-live": "polite" });
  private readonly about = h("p", { class: "quiet" });
  private readonly table = h("table", {
    class: "figures lens",
    click: (event: Event) => this.choose(this.cellAt(event)),
    pointerover: (event: Event) => this.tell(this.cellAt(event)),
    pointerleave: () => this.tell(null),
    focusin: (event: Event) => this.tell(this.cellAt(event)),
    keydown: (event: KeyboardEvent) => this.key(event),
  });
  private readonly scroll = h("div", { class: "scroll", role: "group", "aria-label": "Layers by tokens" }, this.table);
  readonly parts = [this.says, this.scroll, this.about];
  private buttons: HTMLButtonElement[] = [];
  private its: Lensed | null = null;
  private shown: LensTable = { columns: [], rows: [], actual: null, about: "" };
  private focus: LensFocus = { row: 0, column: 0 };

  constructor(private readonly app: App) {}

  build(its: Lensed): void {
    this.its = its;
    this.shown = lensTableOf(its);
    this.about.textContent = this.shown.about;
    const { columns, rows, actual } = this.shown;
    this.buttons = [];
    const top = h("th", { scope: "col" }, "layer");
    const heads = columns.map((column) => h("th", { scope: "col" }, h("bdi", {}, column)));
    const body = rows.map((row, r) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, row.name),
        ...row.cells.map((cell, c) => h("td", {}, this.cell(cell, r, c))),
      ),
    );
    const text =
      actual &&
      h(
        "tfoot",
        {},
        h("tr", {}, h("th", { scope: "row" }, "text"), ...actual.map((word) => h("td", {}, h("bdi", {}, word ?? "")))),
      );
    this.table.replaceChildren(
      h("thead", {}, h("tr", {}, top, ...heads)),
      h("tbody", {}, ...body),
      ...(text ? [text] : []),
    );
  }

  update(focus: LensFocus, anew: boolean): void {
    const columns = this.shown.columns.length;
    this.focus = focus;
    this.buttons.forEach((button, i) => {
      const on = i === focus.row * columns + focus.column;
      set(button, "aria-pressed", on);
      button.tabIndex = on ? 0 : -1;
    });
    this.tell(null);
    // Many layers do not fit: the chosen cell is what is seen first.
    if (anew) requestAnimationFrame(() => this.reveal());
  }

  private reveal(): void {
    const button = this.buttons[this.focus.row * this.shown.columns.length + this.focus.column];
    const cell = button?.parentElement;
    if (!cell) return;
    this.scroll.scrollTop = cell.offsetTop - this.scroll.clientHeight + 2 * cell.offsetHeight;
    this.scroll.scrollLeft = cell.offsetLeft - this.scroll.clientWidth / 2;
  }

  private cell(cell: LensCell, row: number, column: number): HTMLButtonElement {
    const colour = diverging(Math.sign(cell.shade) * shade(Math.abs(cell.shade)), this.app.theme());
    const button = h(
      "button",
      {
        type: "button",
        "data-cell": `${row}:${column}`,
        "data-share": cell.shade,
        "aria-label": cellInWords(this.shown, { row, column }),
        tabindex: -1,
      },
      h("bdi", {}, cell.text),
    );
    button.style.background = css(colour);
    button.style.color = inkOn(colour);
    this.buttons.push(button);
    return button;
  }

  private cellAt(event: Event): LensFocus | null {
    const button = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-cell]") : null;
    const [row, column] = (button?.dataset.cell ?? "").split(":").map(Number);
    return row === undefined || column === undefined ? null : { row, column };
  }

  private choose(cell: LensFocus | null): void {
    const { run, text, head } = this.app.now();
    const its = this.app.page.runs[run] as Run;
    if (cell && this.its) this.app.choose(choiceOfCell(its, its.texts[text] as Text, this.its, cell, head));
  }

  private key(event: KeyboardEvent): void {
    const cell = this.cellAt(event);
    const columns = this.shown.columns.length;
    const to = cell && arrowTo(event.key, cell.row * columns + cell.column, this.buttons.length, columns);
    if (to === null) return;
    event.preventDefault();
    this.choose({ row: Math.floor(to / columns), column: to % columns });
    this.buttons[to]?.focus();
  }

  /** The first words of a cell; without one of the chosen cell. */
  private tell(cell: LensFocus | null): void {
    const { row, column } = cell ?? this.focus;
    const its = this.shown.rows[row] as LensRow;
    const { best, end } = its.cells[column] as LensCell;
    const words = best.flatMap(({ word, has }, i) => [i > 0 ? ", " : "", h("bdi", { class: "word" }, word), ` ${has}`]);
    const at = end === null ? [": "] : [", at ", h("bdi", { class: "word" }, this.shown.columns[column]), ": "];
    this.says.replaceChildren(its.title, ...at, ...words, end === null ? "" : `. ${end}`);
  }
}

export function lensView(app: App): Show {
  const lens = new Lens(app);
  return analysisView<Lensed>(app, {
    className: "lenses",
    things: "Lenses",
    of: (_, text) => text.lens,
    update({ run, text, its }, now, before, element) {
      if (!before) {
        lens.build(its);
        element.replaceChildren(...lens.parts);
      }
      lens.update(focusOf(run, text, its, now), !before);
    },
  });
}
