// The frame around the views: heading, views, undo and redo, pictures, what the page was made by.
import type { App, Show } from "./app";
import { h, set } from "./dom";
import { save, svgOf, pngOf } from "./picture";
import { visible } from "./names";
import type { Page, Run } from "./page";
import { viewsOf, type Choice, type View } from "./state";
import { heading } from "./words";

export interface Doing {
  undo(): void;
  redo(): void;
}

const titles: { [view in View]: string } = {
  live: "Try",
  text: "Text",
  table: "Table",
  head: "Head",
  attribution: "Attribution",
  contributions: "Contributions",
  lens: "Lens",
  circuit: "Circuit",
  retrieval: "Retrieval",
  aligners: "Aligners",
  walk: "Walk",
  compare: "Compare",
  time: "Time",
};

const sentences: { [view in View]: string } = {
  live:
    "The model is in this page: write a text of your own, change heads, and see what it says. " +
    "Nothing leaves the page.",
  text:
    "Arcs go from the word in focus to what this head reads there; the thicker, the more weight. " +
    "Choose another word, or another head.",
  table: "The figures of all heads; choose a column's name to sort by it, and a row to see its head.",
  head:
    "One head in full: what each word reads, the scores that its weights come from, " +
    "and what is known of the head elsewhere.",
  attribution:
    "Which words count for what the model says here, by each method; blue raises it, red lowers it, " +
    "and methods need not agree.",
  contributions:
    "What each head and layer adds to what the model says here; blue raises it, red lowers it. " +
    "Choose a head to see which words it took that from.",
  lens:
    "What the model would say if it stopped after a layer; choose a cell to read it in full. " +
    "A layer that does not say a word may hold it all the same, in a form that later layers read.",
  circuit:
    "Through which edges between heads and layers a model decides between two answers: a report of heads circuit. " +
    "Choose an edge to read it, and a head to see it in the other views.",
  retrieval:
    "Which heads look at a fact far back in a long text while it is said: a report of heads retrieval. " +
    "Choose a head to see where it finds it.",
  aligners:
    "Which heads find the source word of each word of a translation: a report of heads alignment. " +
    "Choose a head to read its figures.",
  walk: "One attention in real numbers, step by step; choose a cell to see the sum that it comes from.",
  compare: "The same head in two models, and the difference; heads whose weights change most come first.",
  time: "The heads through training; move the slider, and the grid follows.",
};

/** Views that show the same whichever text is chosen. */
const aboutNoText: View[] = ["circuit", "retrieval", "walk"];

export class Shell {
  readonly element = h("div", { class: "page" });
  private readonly nav = h("nav", { "aria-label": "Views" });
  private readonly title = h("h1", {});
  private readonly sentence = h("p", { class: "sentence" });
  private readonly place = h("div", { class: "place" });
  private readonly runs = h("select", {
    "aria-label": "Model",
    change: () => this.app.choose({ run: Number(this.runs.value) }),
  });
  private readonly texts = h("select", {
    "aria-label": "Text",
    change: () => this.app.choose({ text: Number(this.texts.value), key: null }),
  });
  private readonly undo = this.button("undo", "Undo", () => this.doing.undo());
  private readonly redo = this.button("redo", "Redo", () => this.doing.redo());
  private readonly foot = h("footer", {});
  private textsOf = -1;

  constructor(
    private readonly app: App,
    private readonly doing: Doing,
  ) {
    const { page } = app;
    for (const view of viewsOf(page)) {
      this.nav.append(
        h("button", { type: "button", "data-view": view, click: () => app.choose({ view }) }, titles[view]),
      );
    }
    this.runs.append(...page.runs.map((run, i) => h("option", { value: i }, visible(run.name))));
    const choosers = h(
      "div",
      { class: "choosers" },
      page.runs.length > 1 && h("label", {}, page.mode === "time" ? "Checkpoint " : "Model ", this.runs),
      h("label", {}, "Text ", this.texts),
    );
    const does = h(
      "div",
      { class: "does" },
      this.undo,
      this.redo,
      this.button("svg", "SVG", () =>
        save(svgOf(this.place, this.title.textContent ?? ""), "image/svg+xml", `${this.fileName()}.svg`),
      ),
      this.button(
        "png",
        "PNG",
        () =>
          void pngOf(this.place, this.title.textContent ?? "").then((blob) =>
            save(blob, "image/png", `${this.fileName()}.png`),
          ),
      ),
    );
    this.element.append(
      h("header", {}, this.nav, does),
      h("div", { class: "title" }, this.title, this.sentence, choosers),
      this.place,
      this.foot,
    );
  }

  private button(name: string, label: string, click: () => void): HTMLButtonElement {
    return h("button", { type: "button", "data-do": name, click }, label);
  }

  private fileName(): string {
    const now = this.app.now();
    return `${now.view}-${now.head}`;
  }

  /** What stands in the shell is of another page. */
  refresh(): void {
    this.textsOf = -1;
  }

  update(now: Choice, past: number, future: number): void {
    const { page } = this.app;
    const { place, words } = heading(page, now);
    this.title.replaceChildren(words ? `${place}: ` : place, h("bdi", {}, visible(words)));
    document.title = `${this.title.textContent} · multihead`;
    const whole = now.changes !== "" && now.view !== "live" ? " Heads that are changed in Try are whole here." : "";
    this.sentence.textContent = sentences[now.view] + whole;
    for (const button of this.nav.querySelectorAll("button"))
      set(button, "aria-current", button.dataset.view === now.view ? "page" : "false");
    this.undo.disabled = past === 0;
    this.redo.disabled = future === 0;
    this.runs.value = String(now.run);
    const run = page.runs[now.run] as Run;
    if (this.textsOf !== now.run) {
      this.textsOf = now.run;
      this.texts.replaceChildren(
        ...run.texts.map((text, i) => h("option", { value: i }, cut(visible(text.source.text)))),
      );
      this.foot.replaceChildren(...footOf(page, run));
    }
    this.texts.value = String(now.text);
    (this.texts.parentElement as HTMLElement).hidden = run.texts.length < 2 || aboutNoText.includes(now.view);
  }

  show(view: Show): void {
    if (this.place.firstChild !== view.element) this.place.replaceChildren(view.element);
  }
}

const cut = (text: string): string => ([...text].length > 60 ? `${[...text].slice(0, 59).join("")}…` : text);

/** The command that made the page; a long one is folded. */
function commandOf(command: string): HTMLElement {
  const all = visible(command);
  if ([...all].length <= 160) return h("code", {}, all);
  return h("details", {}, h("summary", {}, h("code", {}, `${[...all].slice(0, 140).join("")}…`)), h("code", {}, all));
}

function footOf(page: Page, run: Run): HTMLElement[] {
  const products = run.texts.some((text) => text.maps.some((maps) => maps.roots === null));
  return [
    h(
      "p",
      {},
      "Attention is not yet an explanation: weights say where a head reads, and neither what it does with what it " +
        "reads nor whether the model needs it.",
    ),
    h(
      "p",
      {},
      "Figures rest on ",
      h("bdi", {}, visible(run.evidence.of)),
      ". Weights are drawn with an error below 0.004",
      products ? " (made here of queries and keys kept in 16 bits)." : " (their roots are kept in 8 bits).",
    ),
    h(
      "div",
      { class: "made" },
      "Made by ",
      commandOf(page.made.command),
      ` · ${visible(page.made.version)} · `,
      h("bdi", {}, visible(run.name)),
      " · SHA-256 ",
      h("code", { title: run.hash }, run.hash.slice(0, 16)),
    ),
  ];
}
