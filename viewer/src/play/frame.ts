// A page to play with on the screen: the question, a guess, sliders, matrices whose cells open their sums, what
// happened in numbers, and
// the answer.
import { h, set } from "../dom";
import type { WalkStep } from "../page";
import { StepFigure } from "../views/stepfigure";
import { type Cell, sumOf } from "../views/sum";
import { Steps } from "../walk";
import type { LiveElements } from "../live/session";
import { type Chosen, chosenOf, fragmentOf } from "./address";
import { chartSvg } from "./chart";
import { type Chart, type Play, type Row, type Shown, type Slider, type Trained, wordsOf } from "./play";
import { Reading } from "./reading";
import type { Moment, TrainingOptions } from "./training";
import { type TypedText, typedText } from "./typed";
import { typeset } from "./typeset";

/** What the answer's page says (docs/answers/NAME.md). */
export interface Text {
  question: string;
  answer: string[];
}

/** So many trainings before the last one stay in the charts. */
const mostTried = 7;

const howToRead =
  "The darker a cell, the farther its number is from 0, beside the largest of its matrix; grey ones are below 0. " +
  "A matrix of weights is a head's map: its row for a word adds up to 1, and says how much of each word that word " +
  "reads. What is said to move is the share of a row that would have to go to other words.";

const chartOf = (chart: Chart): HTMLElement =>
  h(
    "figure",
    { class: "charted" },
    h("h2", {}, chart.title),
    h("p", { class: "quiet" }, ...typeset(chart.about)),
    chartSvg(chart),
  );

const dark = matchMedia("(prefers-color-scheme: dark)");
const theme = (): "light" | "dark" => (dark.matches && !matchMedia("print").matches ? "dark" : "light");

export class Frame {
  private chosen: Chosen;
  private readonly outputs = new Map<string, { input: HTMLInputElement; words: HTMLElement }>();
  private readonly verdict = h("p", { class: "verdict", role: "status" });
  private readonly guesses: HTMLInputElement[];
  private readonly after = h("div", { class: "after", hidden: true });
  private readonly rows = h("div", { class: "rows" });
  private readonly charts = h("div", { class: "charts" });
  private trainings: Trained[] = [];
  private worker: Worker | null = null;
  private readonly reading: Reading | null;
  private readonly typed: TypedText | null;
  private readonly sum = h("section", {
    class: "sum",
    "aria-live": "polite",
    "aria-label": "The sum of the chosen cell",
  });
  private readonly said = h("div", { class: "said", role: "status" });
  private readonly reveal = h(
    "button",
    { type: "button", class: "reveal", "data-do": "answer", click: () => this.choose({ answered: true }) },
    "Show the answer",
  );
  private readonly answer: HTMLElement;
  private figures = new Map<string, StepFigure>();
  private drawn = "";
  private shown: Shown | null = null;
  private steps: Steps | null = null;
  readonly element: HTMLElement;

  constructor(
    private readonly play: Play,
    text: Text,
    /** The script of the worker that trains. */
    private readonly script: string,
    /** The model in the page; null: there is none. */
    elements: LiveElements | null,
  ) {
    this.chosen = this.read();
    this.reading = elements && new Reading(elements, () => this.told());
    this.typed = elements && typedText((typed) => this.choose({ cell: "", text: typed }));
    this.guesses = play.guess.choices.map((_, i) =>
      h("input", { type: "radio", name: "guess", value: i, change: () => this.choose({}, { guess: i }) }),
    );
    this.answer = h(
      "section",
      { class: "answer", hidden: true, "aria-label": "The answer" },
      h("h2", {}, "The answer"),
      ...text.answer.map((paragraph) => h("p", {}, ...typeset(paragraph))),
      h("p", { class: "quiet" }, h("a", { href: `../${play.name}.md` }, "The whole answer, with its evidence")),
    );
    this.after.append(
      h(
        "div",
        { class: "controls" },
        this.typed?.element,
        h("div", { class: "sliders" }, ...play.sliders.map((slider) => this.slider(slider))),
      ),
      this.said,
      this.charts,
      h("p", { class: "quiet" }, howToRead),
      this.rows,
      this.reveal,
      this.answer,
    );
    this.element = h(
      "div",
      { class: "page playing" },
      h("h1", {}, ...typeset(text.question)),
      ...play.lead.map((paragraph) => h("p", { class: "lead" }, ...typeset(paragraph))),
      h(
        "fieldset",
        { class: "guess" },
        h("legend", {}, play.guess.ask),
        ...play.guess.choices.map((choice, i) => h("label", {}, this.guesses[i], " ", ...typeset(choice))),
      ),
      this.verdict,
      this.after,
    );
    addEventListener("hashchange", () => {
      this.chosen = this.read();
      this.update();
    });
    for (const event of ["beforeprint", "afterprint"]) addEventListener(event, () => this.draw());
    dark.addEventListener("change", () => this.draw());
    this.update();
  }

  private read(): Chosen {
    return chosenOf(location.hash, this.play.sliders, this.play.guess.choices.length);
  }

  private choose(change: Partial<Chosen>, values: { [name: string]: number } = {}): void {
    this.chosen = { ...this.chosen, ...change, values: { ...this.chosen.values, ...values } };
    history.replaceState(null, "", fragmentOf(this.chosen, this.play.sliders));
    this.update();
  }

  private slider({ name, label, choices }: Slider): HTMLElement {
    const input = h("input", {
      type: "range",
      min: 0,
      max: choices.length - 1,
      "data-slider": name,
      input: () => this.choose({ cell: "" }, { [name]: choices[Number(input.value)] as number }),
    });
    const value = h("b", {});
    this.outputs.set(name, { input, words: value });
    return h("label", { class: "slider" }, h("span", {}, ...typeset(label), ": ", value), input);
  }

  private update(): void {
    const { values, answered } = this.chosen;
    const { guess, sliders } = this.play;
    const guessed = values.guess ?? -1;
    this.guesses.forEach((input, i) => {
      input.checked = i === guessed;
    });
    this.after.hidden = guessed < 0;
    const verdict = guessed === guess.right ? "Yes." : `No. Right is “${guess.choices[guess.right]}”.`;
    this.verdict.replaceChildren(
      ...(guessed < 0 ? [] : h("span", {}, ...typeset(`${verdict} ${guess.why}`)).childNodes),
    );
    for (const { name, choices, words } of sliders) {
      const value = values[name] as number;
      const output = this.outputs.get(name);
      if (!output) continue;
      output.input.value = String(choices.indexOf(value));
      output.words.textContent = words(value);
      set(output.input, "aria-valuetext", words(value));
    }
    this.answer.hidden = !answered;
    this.reveal.hidden = answered;
    if (this.play.reads) {
      const text = this.chosen.text || this.play.reads.first;
      this.typed?.show(text);
      // Before a guess, too: the model opens meanwhile.
      this.reading?.ask({ text, layer: this.play.reads.layer(values) });
    }
    if (guessed < 0) return;
    if (this.play.train) this.train(this.play.train(values));
    this.show();
  }

  /** Begins a training, unless it is the one that is under way or done; another one ends. */
  private train(options: TrainingOptions): void {
    const key = JSON.stringify(options);
    const before = this.trainings.findIndex((one) => JSON.stringify(one.options) === key);
    if (before >= 0 && before === this.trainings.length - 1) return;
    this.worker?.terminate();
    this.worker = null;
    // One that was ended has no last moment, and is not kept.
    const whole = Math.max(0, ...this.trainings.map(({ moments }) => moments.length));
    const kept = this.trainings.filter(({ moments }) => moments.length === whole);
    const again = kept.find((one) => JSON.stringify(one.options) === key);
    this.trainings = kept.filter((one) => one !== again).slice(-mostTried);
    if (again) {
      this.trainings.push(again);
      return;
    }
    const moments: Moment[] = [];
    this.trainings.push({ options, moments });
    this.worker = new Worker(URL.createObjectURL(new Blob([this.script], { type: "text/javascript" })));
    this.worker.onmessage = ({ data }: MessageEvent<Moment>) => {
      moments.push(data);
      this.show();
    };
    this.worker.postMessage(options);
  }

  /** The model in the page knows more than before. */
  private told(): void {
    if ((this.chosen.values.guess ?? -1) >= 0) this.show();
  }

  private show(): void {
    const { read = null, line = "" } = this.reading ?? {};
    this.shown = line
      ? { trace: null, rows: [], said: [line] }
      : this.play.show(this.chosen.values, this.trainings, read);
    const { trace, charts = [] } = this.shown;
    this.steps = trace && new Steps(trace.walk(), trace.buffer());
    this.charts.replaceChildren(...charts.map(chartOf));
    this.said.replaceChildren(...this.shown.said.map((line) => h("p", {}, ...typeset(line))));
    this.build(this.shown.rows);
    this.draw();
  }

  /** Figures stay where they are as long as the same matrices are shown, so that the keyboard keeps its place. */
  private build(rows: readonly Row[]): void {
    const drawn = JSON.stringify(rows);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.figures = new Map(rows.flatMap(({ steps }) => steps.map((name) => [name, new StepFigure(false)])));
    this.rows.replaceChildren(
      ...rows.map(({ title, about, steps }) =>
        h(
          "section",
          {},
          h("h2", {}, ...typeset(title)),
          h("p", { class: "quiet" }, ...typeset(about)),
          h("div", { class: "figures-row" }, ...steps.map((name) => this.figures.get(name)?.element)),
        ),
      ),
    );
  }

  private openCell(steps: Steps): Cell | null {
    const [name = "", ...at] = this.chosen.cell.split(":");
    const [row = Number.NaN, column = Number.NaN] = at.map(Number);
    const step = steps.get(name);
    return step && row < step.rows && column < step.columns ? { step, row, column } : null;
  }

  private draw(): void {
    const { steps } = this;
    if (!steps || !this.shown?.trace) return;
    const open = this.openCell(steps);
    const sum = open && steps.sum(open.step, open.row, open.column);
    const words = [...(this.shown.words ?? wordsOf(this.shown.trace.get("x").rows))];
    const labels = (axis: WalkStep["row_axis"]) => (axis === "numbers" ? null : words);
    for (const [of, figure] of this.figures) {
      const step = steps.get(of);
      if (!step) continue;
      const factor = sum?.factors.find((one) => one.step === step);
      figure.show({
        step,
        values: steps.values(step),
        rows: labels(step.row_axis),
        columns: labels(step.column_axis),
        word: null,
        chosen: open?.step === step ? [open.row, open.column] : null,
        part: factor ? { row: factor.row, column: factor.column } : null,
        theme: theme(),
        choose: (r, c) => this.choose({ cell: `${of}:${r}:${c}` }),
      });
    }
    this.sum.replaceChildren(
      ...(open && sum
        ? sumOf(open, sum)
        : [h("p", { class: "quiet" }, "Choose a cell of a matrix to see what it is the sum of.")]),
    );
    // Beside the matrix whose cell it is, as long as that one is shown.
    const beside =
      (open && this.figures.get(open.step.name)?.element.parentElement) ?? this.rows.querySelector(".figures-row");
    if (beside && this.sum.parentElement !== beside) beside.append(this.sum);
    set(this.sum, "data-cell", open ? this.chosen.cell : "");
  }
}
