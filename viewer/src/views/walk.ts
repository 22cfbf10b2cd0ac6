// The walk: one attention and one word in real numbers.
import type { App, Show } from "../app";
import { h, set } from "../dom";
import { figure, shown } from "../names";
import type { Run, Text, Tokens, Walk, WalkStep } from "../page";
import type { Choice } from "../state";
import { chaptersOf, headsOf, kindOf, partsOf, Steps, walkedHead, type Chapter, type Sum } from "../walk";
import { sidesOf } from "../app";
import { StepFigure } from "./stepfigure";
import { type Cell, splitBar, sumOf } from "./sum";

class WalkView implements Show {
  private readonly list = h("ol", { class: "chapters" });
  private readonly about = h("p", { class: "chapter-about" });
  private readonly figures = h("div", { class: "step-figures" });
  private readonly sum = h("section", { class: "sum", "aria-live": "polite" });
  private readonly splits = h("p", { class: "splits" });
  private readonly heads = h("select", {
    "aria-label": "Head of the walk",
    change: () => this.app.choose({ head: `${this.walk?.attention}.${this.heads.value}`, cell: "" }),
  });
  private readonly words = h("select", {
    "aria-label": "Word",
    change: () => this.app.choose({ query: Number(this.words.value) }),
  });
  private readonly back = h(
    "button",
    { type: "button", class: "plain", "data-do": "back", click: () => this.go(-1) },
    "← Back",
  );
  private readonly next = h(
    "button",
    { type: "button", class: "plain", "data-do": "next", click: () => this.go(1) },
    "Next →",
  );
  readonly element = h(
    "div",
    { class: "view walk" },
    h(
      "div",
      { class: "above" },
      this.back,
      this.next,
      h("label", {}, "Head ", this.heads),
      h("label", {}, "Word ", this.words),
    ),
    h("div", { class: "walking" }, this.list, h("div", { class: "stage" }, this.about, this.splits, this.figures)),
  );
  private walk: Walk | null = null;
  private steps: Steps | null = null;
  private drawn = new Map<string, StepFigure>();
  private inPlace = "";

  constructor(private readonly app: App) {
    addEventListener("keydown", (event) => {
      if (!this.element.isConnected || event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
      if (
        event.target instanceof HTMLSelectElement ||
        event.target instanceof HTMLInputElement ||
        event.target instanceof HTMLCanvasElement
      )
        return;
      if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
      event.preventDefault();
      this.go(event.key === "ArrowRight" ? 1 : -1);
    });
  }

  private go(by: number): void {
    const now = this.app.now();
    const count = this.walk ? chaptersOf(this.walk, walkedHead(this.walk, now.head)).length : 0;
    const step = Math.min(count - 1, Math.max(0, Math.min(now.step, count - 1) + by));
    if (step !== now.step) this.app.choose({ step, cell: "" });
  }

  update(now: Choice, before: Choice | null): void {
    const run = this.app.page.runs[now.run]?.walk
      ? (this.app.page.runs[now.run] as Run)
      : this.app.page.runs.find((one) => one.walk !== null);
    const walk = run?.walk;
    if (!run || !walk) return;
    if (this.walk !== walk) {
      this.walk = walk;
      this.steps = new Steps(walk, this.app.weights.opened.numbers);
      this.heads.replaceChildren(...headsOf(walk).map((head) => h("option", { value: head }, head)));
      this.inPlace = "";
    }
    const head = walkedHead(walk, now.head);
    const of = run.attentions.find((one) => one.name === walk.attention);
    const text = run.texts[0] as Text;
    const [querySide, keySide] = of ? sidesOf(of, text) : (["source", "source"] as const);
    const [queries, keys] = [text[querySide] as Tokens, text[keySide] as Tokens];
    const word = Math.min(now.query, queries.tokens.length - 1);
    if (this.words.length !== queries.tokens.length)
      this.words.replaceChildren(
        ...queries.tokens.map((token, i) => h("option", { value: i }, shown(token.label, 24))),
      );
    this.heads.value = String(head);
    this.words.value = String(word);
    const chapters = chaptersOf(walk, head);
    const at = Math.min(now.step, chapters.length - 1);
    const chapter = chapters[at] as Chapter;
    this.back.disabled = at === 0;
    this.next.disabled = at === chapters.length - 1;
    const place = `${head} ${at}`;
    if (this.inPlace !== place) this.stage(walk, chapters, at, head);
    this.inPlace = place;
    const open = this.cellOf(now.cell);
    const sum = open && (this.steps as Steps).sum(open.step, open.row, open.column);
    this.draw(word, queries, keys, open, sum);
    if (!before || before.cell !== now.cell || before.query !== now.query || this.sum.childElementCount === 0)
      this.tell(open, sum, word, queries, chapter);
  }

  private cellOf(cell: string): { step: WalkStep; row: number; column: number } | null {
    const [name, row, column] = cell.split(":");
    const step = this.steps?.get(name ?? "");
    if (!step || !this.drawn.has(step.name)) return null;
    const [r, c] = [Number(row), Number(column)];
    return Number.isInteger(r) && Number.isInteger(c) && r >= 0 && c >= 0 && r < step.rows && c < step.columns
      ? { step, row: r, column: c }
      : null;
  }

  /** Formulas at the left, the matrices of the chapter at the right. */
  private stage(walk: Walk, chapters: Chapter[], at: number, head: number): void {
    const focused = this.list.contains(document.activeElement);
    this.list.replaceChildren(
      ...chapters.map((chapter, i) =>
        h(
          "li",
          { "aria-current": i === at ? "step" : false },
          h(
            "button",
            { type: "button", class: "chapter", "data-step": i, click: () => this.app.choose({ step: i, cell: "" }) },
            h("span", { class: "count" }, i + 1),
            chapter.title,
          ),
          h("div", { class: "formulas" }, ...chapter.steps.map((step) => this.formula(step, walk))),
        ),
      ),
    );
    if (focused) this.list.querySelector<HTMLElement>(`[data-step="${at}"]`)?.focus();
    const chapter = chapters[at] as Chapter;
    this.about.textContent = chapter.about;
    const shared = chapter.steps.find((step) => step.heads.length > 1);
    this.splits.replaceChildren(
      splitBar(headsOf(walk).length, headsOf(walk).indexOf(head), chapter.split),
      shared
        ? `Shared by heads ${shared.heads.join(", ")}.`
        : chapter.split
          ? `Split: each of the ${headsOf(walk).length} heads has its own; this is head ${head}.`
          : "Not split: one for all heads.",
    );
    this.drawn = new Map();
    const rows = chapter.steps.flatMap((step, n) => {
      const result = h("div", { class: "equation" }, this.figureOf(step.name, true).element, n === 0 && this.sum);
      const pieces = (this.steps as Steps).pieces(step);
      const few = pieces.length <= 4 ? pieces : pieces.filter((one) => one.heads.includes(head));
      const operands = few
        .filter((one) => !this.drawn.has(one.name))
        .map((one, i) => {
          const sign =
            i === 0
              ? `= ${/^softmax|^-?[\d.e-]+ /.exec(step.formula)?.[0] ?? ""}`
              : step.formula.startsWith("[")
                ? "|"
                : step.formula.includes(` + ${one.name}`)
                  ? "+"
                  : "·";
          return h(
            "span",
            { class: "operand" },
            h("span", { class: "sign", "aria-hidden": "true" }, few.length < pieces.length ? "= … |" : sign),
            this.figureOf(one.name, false).element,
            few.length < pieces.length && h("span", { class: "sign", "aria-hidden": "true" }, "| …"),
          );
        });
      return operands.length > 0 ? [result, h("div", { class: "equation operands" }, ...operands)] : [result];
    });
    this.figures.replaceChildren(...rows);
    this.sum.replaceChildren();
  }

  private figureOf(name: string, large: boolean): StepFigure {
    const made = new StepFigure(large);
    this.drawn.set(name, made);
    return made;
  }

  private formula(step: WalkStep, walk: Walk): HTMLElement {
    const symbol = (name: string, text: string) => {
      const light = (on: boolean) => () => this.drawn.get(name)?.element.classList.toggle("lit", on);
      return h(
        "button",
        {
          type: "button",
          class: `symbol ${kindOf(name)}`,
          "data-symbol": name,
          pointerenter: light(true),
          pointerleave: light(false),
          focus: light(true),
          blur: light(false),
          click: light(true),
        },
        text,
      );
    };
    const parts = partsOf(step.formula, walk).map((part) =>
      part.step ? symbol(part.step.name, part.turned ? `${part.step.name}ᵀ` : part.text) : part.text,
    );
    const known = parts.some((part) => typeof part !== "string");
    return h("p", {}, symbol(step.name, step.name), known ? " = " : ": ", ...parts);
  }

  private draw(word: number, queries: Tokens, keys: Tokens, open: Cell | null, sum: Sum | null): void {
    const labels = (axis: WalkStep["row_axis"]) =>
      axis === "numbers" ? null : (axis === "queries" ? queries : keys).tokens.map((token) => shown(token.label, 12));
    for (const [name, made] of this.drawn) {
      const step = (this.steps as Steps).get(name) as WalkStep;
      const factor = sum?.factors.find((one) => one.step === step);
      made.show({
        step,
        values: (this.steps as Steps).values(step),
        rows: labels(step.row_axis),
        columns: labels(step.column_axis),
        word: step.row_axis === "queries" ? word : null,
        chosen: open?.step === step ? [open.row, open.column] : null,
        part: factor ? { row: factor.row, column: factor.column } : null,
        theme: this.app.theme(),
        choose: (row, column) =>
          this.app.choose({ cell: `${name}:${row}:${column}`, ...(step.row_axis === "queries" ? { query: row } : {}) }),
      });
    }
  }

  /** The sum of a chosen cell, or else the word's row in numbers. */
  private tell(open: Cell | null, sum: Sum | null, word: number, queries: Tokens, chapter: Chapter): void {
    if (!open || !sum) {
      const step = chapter.steps[chapter.steps.length - 1] as WalkStep;
      const row = step.row_axis === "queries" ? word : 0;
      const values = (this.steps as Steps).values(step).subarray(row * step.columns, (row + 1) * step.columns);
      const of =
        step.row_axis === "queries"
          ? h("bdi", { class: "word" }, shown(queries.tokens[word]?.label ?? ""))
          : "its first row";
      this.sum.replaceChildren(
        h("h2", {}, h("span", { class: kindOf(step.name) }, step.name), " of ", of),
        h(
          "p",
          { class: "numbers" },
          [...values.subarray(0, 64)].map(figure).join("  "),
          values.length > 64 ? " …" : "",
        ),
        h("p", { class: "quiet" }, "Choose a cell of a matrix to see what it is the sum of."),
      );
      return;
    }
    this.sum.replaceChildren(...sumOf(open, sum));
    set(this.sum, "data-cell", `${open.step.name}:${open.row}:${open.column}`);
  }
}

export const walkView = (app: App): Show => new WalkView(app);
