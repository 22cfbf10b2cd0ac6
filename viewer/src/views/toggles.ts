// The three toggles of how weights are shown.
import { headOf, type App } from "../app";
import { h, set } from "../dom";
import { sinksOf } from "../merge";
import type { Choice } from "../state";

export class Toggles {
  private readonly hide = this.button(
    "hide",
    "Hide sinks",
    "Leave out special tokens, and the first token where queries see only what is before them",
  );
  private readonly words = this.button(
    "words",
    "Whole words",
    "Put the pieces of a word together: of keys the sum, of queries the mean",
  );
  private readonly lengths = this.button(
    "lengths",
    "Weight × ‖v Wᴼ‖",
    "Multiply each weight by the length of what the head adds when it reads that key alone",
  );
  readonly element = h(
    "div",
    { class: "toggles", role: "group", "aria-label": "How weights are shown" },
    this.hide,
    this.words,
    this.lengths,
  );

  constructor(private readonly app: App) {}

  private button(name: "hide" | "words" | "lengths", label: string, title: string): HTMLButtonElement {
    return h(
      "button",
      { type: "button", "data-toggle": name, title, click: () => this.app.choose({ [name]: !this.app.now()[name] }) },
      label,
    );
  }

  update(now: Choice): void {
    const head = headOf(this.app, now);
    if (!head) return;
    set(this.hide, "aria-pressed", now.hide);
    set(this.words, "aria-pressed", now.words);
    set(this.lengths, "aria-pressed", now.lengths);
    this.hide.hidden = !now.hide && !sinksOf(head.keys, head.attention.causal).some(Boolean);
    const pieces = (tokens: typeof head.keys) =>
      tokens.tokens.some((token, i) => token.word >= 0 && token.word === tokens.tokens[i - 1]?.word);
    this.words.hidden = !now.words && !pieces(head.keys) && !pieces(head.queries);
    this.lengths.hidden = !now.lengths && head.maps.value_lengths === null;
  }
}
