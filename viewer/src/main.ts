// Opens the page's data, holds what is chosen, and shows the view of it.
import type { App, Show } from "./app";
import { BadPage } from "./reader";
import { openPage, type Opened } from "./decode";
import { h } from "./dom";
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
import { makers } from "./views/all";
import { Weights } from "./weights";

const dark = matchMedia("(prefers-color-scheme: dark)");

class Viewer implements App {
  readonly page;
  readonly weights: Weights;
  private history: History;
  private merging = "";
  private readonly first: Choice;
  private readonly shows = new Map<View, { show: Show; seen: Choice | null }>();
  private readonly shell: Shell;

  constructor(opened: Opened, root: HTMLElement) {
    this.page = opened.page;
    this.weights = new Weights(opened);
    this.first = firstChoice(this.page);
    this.history = begin(settled(choiceOf(location.hash, this.first), this.page));
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

  private redraw(): void {
    for (const of of this.shows.values()) of.seen = null;
    this.render();
  }

  private key(event: KeyboardEvent): void {
    const typing = event.target instanceof HTMLInputElement && event.target.type !== "range";
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
    new Viewer(opened, root);
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
