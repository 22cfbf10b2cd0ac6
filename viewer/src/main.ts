// Opens the page's data, holds what is chosen, and shows the view of it.
import type { App, Show } from "./app";
import { BadPage } from "./reader";
import { openPage, type Opened } from "./decode";
import { h } from "./dom";
import { Live } from "./live/live";
import { type LiveElements, liveElements } from "./live/session";
import { Shell } from "./shell";
import {
  begin,
  choiceOf,
  chosen,
  firstChoice,
  fragmentOf,
  redone,
  settled,
  undone,
  type Choice,
  type History,
  type View,
} from "./state";
import type { Page } from "./page";
import { makers } from "./views/all";
import { Weights } from "./weights";

const dark = matchMedia("(prefers-color-scheme: dark)");

class Viewer implements App {
  page: Page;
  weights: Weights;
  readonly live: Live | null;
  private history: History;
  private merging = "";
  private readonly first: Choice;
  private readonly shows = new Map<View, { show: Show; seen: Choice | null }>();
  private readonly shell: Shell;

  constructor(opened: Opened, root: HTMLElement, elements: LiveElements | null) {
    this.page = opened.page;
    this.weights = new Weights(opened);
    this.first = firstChoice(this.page);
    this.history = begin(settled(choiceOf(location.hash, this.first), this.page));
    this.live =
      elements &&
      new Live(elements, opened.page, {
        told: () => this.told(),
        remade: (again) => this.remade(again),
      });
    this.shell = new Shell(this, {
      undo: () => this.go(undone(this.history)),
      redo: () => this.go(redone(this.history)),
    });
    root.replaceChildren(this.shell.element);
    this.render();
    addEventListener("hashchange", () =>
      this.go(chosen(this.history, settled(choiceOf(location.hash, this.first), this.page))),
    );
    addEventListener("keydown", (event) => this.key(event));
    dark.addEventListener("change", () => this.redraw());
    addEventListener("beforeprint", () => this.redraw());
    addEventListener("afterprint", () => this.redraw());
  }

  theme(): "light" | "dark" {
    return dark.matches && !matchMedia("print").matches ? "dark" : "light";
  }

  now(): Choice {
    return this.history.now;
  }

  choose(change: Partial<Choice>, merge = ""): void {
    const next = chosen(
      this.history,
      settled({ ...this.history.now, ...change }, this.page),
      merge !== "" && merge === this.merging,
    );
    if (next === this.history) return;
    this.go(next);
    this.merging = merge;
  }

  private go(history: History): void {
    this.merging = "";
    if (history === this.history) return;
    this.history = history;
    const fragment = fragmentOf(history.now);
    try {
      if (location.hash !== fragment) window.history.replaceState(null, "", fragment);
    } catch {
      // A frame made of srcdoc has no address of its own; what is chosen stays in here.
    }
    this.render();
  }

  private render(): void {
    const { now, past, future } = this.history;
    this.shell.update(now, past.length, future.length);
    this.live?.ask(now);
    let of = this.shows.get(now.view);
    if (!of) {
      of = { show: makers[now.view](this), seen: null };
      this.shows.set(now.view, of);
    }
    this.shell.show(of.show);
    const before = of.seen;
    of.seen = now;
    of.show.update(now, before);
  }

  /** The live page knows more than before. */
  private told(): void {
    const of = this.shows.get("live");
    if (of && this.history.now.view === "live") of.show.update(this.history.now, of.seen);
  }

  /** The page of another text: what is chosen stays as far as that has it. */
  private remade(opened: Opened): void {
    this.page = opened.page;
    this.weights = new Weights(opened);
    for (const view of this.shows.keys()) if (view !== "live") this.shows.delete(view);
    this.history = { ...this.history, now: settled(this.history.now, this.page) };
    this.shell.refresh();
    this.render();
  }

  private redraw(): void {
    for (const of of this.shows.values()) of.seen = null;
    this.render();
  }

  private key(event: KeyboardEvent): void {
    const { target } = event;
    const typing =
      target instanceof HTMLTextAreaElement || (target instanceof HTMLInputElement && target.type !== "range");
    if (!(event.ctrlKey || event.metaKey) || event.altKey || typing) return;
    const key = event.key.toLowerCase();
    if (key !== "z" && key !== "y") return;
    event.preventDefault();
    this.go(key === "y" || event.shiftKey ? redone(this.history) : undone(this.history));
  }
}

async function start(): Promise<void> {
  const root = document.getElementById("app") as HTMLElement;
  const data = document.getElementById("data");
  try {
    if (typeof DecompressionStream === "undefined")
      throw new BadPage("This browser is too old for this page: it has no DecompressionStream.");
    const opened = await openPage(data?.textContent ?? "");
    data?.remove();
    const elements = liveElements(document);
    opened.page.live = elements !== null;
    new Viewer(opened, root, elements);
  } catch (error) {
    const why =
      error instanceof BadPage
        ? error.message
        : `Something went wrong: ${error instanceof Error ? error.message : String(error)}`;
    root.replaceChildren(h("p", { class: "bad", role: "alert" }, `This page cannot be shown. ${why}`));
    if (!(error instanceof BadPage)) console.error(error);
  }
}

void start();
