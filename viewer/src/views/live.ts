// The model in the page answers: the reader's text, heads that are changed, what each is needed for.
import type { App, Show } from "../app";
import { h, set } from "../dom";
import { type Change, mostGate, readBy, readChanges, type Rule, rules, withHeads, writeChanges } from "../live/changes";
import { compared } from "../live/compare";
import type { Live } from "../live/live";
import { type Said, numberOf } from "../live/question";
import {
  changesInWords,
  differenceInWords,
  fullLoss,
  headsOfLayer,
  leftOutInWords,
  liveBands,
  lossesOf,
  mostInWords,
  stateInWords,
  weightsInWords,
} from "../live/told";
import { figure, headNames, percent, shown, visible } from "../names";
import { headInWords } from "../words";
import { titleOfNode } from "../node";
import type { Run } from "../page";
import type { Choice } from "../state";
import { fullScore } from "../written";
import { scoredLine } from "./scored";
import { Squares } from "./squares";

const pause = 250;

/** What is typed is asked for when the reader pauses. */
function box(name: "typed" | "second", label: string, typed: (text: string) => void): HTMLTextAreaElement {
  let waits = 0;
  const area = h("textarea", {
    "data-box": name,
    "aria-label": label,
    rows: 2,
    spellcheck: "false",
    input: () => {
      clearTimeout(waits);
      waits = window.setTimeout(() => typed(area.value), pause);
    },
  });
  return area;
}

function lane(title: string, said: Said | null, other: Said | null): HTMLElement {
  const words = said === null ? [] : compared(said.text, (other ?? said).text);
  const text = words.flatMap(({ word, kept }, i) => [
    i > 0 && " ",
    kept ? visible(word) : h("mark", {}, visible(word)),
  ]);
  const next = (said?.next ?? []).map(({ word, probability }) =>
    h("li", { "data-next": probability }, h("bdi", {}, shown(word)), ` ${percent(probability)}`),
  );
  const alike = said !== null && said.similarity !== null && h("p", { class: "alike" }, figure(said.similarity));
  return h(
    "section",
    { class: "lane", "aria-label": title },
    h("h2", {}, title),
    said === null ? h("p", { class: "quiet" }, "…") : alike || h("p", { class: "says" }, h("bdi", {}, ...text)),
    next.length > 0 && h("p", { class: "quiet" }, "Most probable first"),
    next.length > 0 && h("ul", { class: "next" }, ...next),
  );
}

/** What is done to the chosen head: a slider, its weights' rule, its layer, and back. */
class HeadPanel {
  private readonly title = h("h2", {});
  private readonly role = h("p", { class: "quiet" });
  private readonly slider = h("input", {
    type: "range",
    min: 0,
    max: mostGate,
    step: 0.05,
    "data-do": "gate",
    "aria-label": "Factor on what the head gives",
    input: () => this.change(Number(this.slider.value), "gate"),
  });
  private readonly factor = h("output", {});
  private readonly mute = h("button", { type: "button", "data-do": "mute", click: () => this.toggle([this.head()]) });
  private readonly layer = h("button", {
    type: "button",
    "data-do": "layer",
    click: () => this.toggle(headsOfLayer(this.run(), this.head())),
  });
  private readonly rule = h(
    "select",
    {
      "data-do": "rule",
      "aria-label": "What the head reads",
      change: () => this.change(this.rule.value === "" ? null : (this.rule.value as Rule)),
    },
    h("option", { value: "" }, "its own weights"),
    ...rules.map((rule) => h("option", { value: rule }, readBy[rule])),
  );
  readonly element = h(
    "section",
    { class: "changing", "aria-label": "The chosen head" },
    this.title,
    h(
      "div",
      { class: "role" },
      this.role,
      h(
        "button",
        { type: "button", class: "plain", "data-do": "reads", click: () => this.app.choose({ view: "text" }) },
        "See what it reads",
      ),
    ),
    h("div", { class: "toggles" }, this.mute, this.layer),
    h("label", { class: "slider" }, "gives ", this.slider, this.factor),
    h("label", {}, "reads by ", this.rule),
  );

  constructor(private readonly app: App) {}

  private run(): Run {
    return this.app.page.runs[this.app.now().run] as Run;
  }
  private head(): string {
    return this.app.now().head;
  }

  private change(change: Change | null, merge = "", heads = [this.head()]): void {
    const changes = readChanges(this.app.now().changes, this.run());
    this.app.choose({ changes: writeChanges(withHeads(changes, heads, change)) }, merge && `${merge} ${heads[0]}`);
  }

  /** Leaves them out, or puts them back where all are out. */
  private toggle(heads: string[]): void {
    const changes = readChanges(this.app.now().changes, this.run());
    this.change(heads.every((head) => changes.get(head) === 0) ? null : 0, "", heads);
  }

  update(now: Choice): void {
    const run = this.run();
    const changes = readChanges(now.changes, run);
    const change = changes.get(now.head) ?? 1;
    const layer = headsOfLayer(run, now.head);
    this.title.textContent = titleOfNode(run, now.head);
    this.role.textContent = headInWords(run, now.head);
    this.mute.textContent = "Leave it out";
    set(this.mute, "aria-pressed", change === 0);
    this.layer.textContent = `Leave its layer out (${layer.length})`;
    set(
      this.layer,
      "aria-pressed",
      layer.every((head) => changes.get(head) === 0),
    );
    const gate = typeof change === "number" ? change : 1;
    this.slider.value = String(gate);
    this.slider.disabled = typeof change !== "number";
    this.factor.textContent = `${gate} times`;
    this.rule.value = typeof change === "number" ? "" : change;
  }
}

export function liveView(app: App): Show {
  const live = app.live as Live;
  const typed = box("typed", "Your text", (text) => app.choose({ typed: text, query: 0, key: null }, "typed"));
  typed.placeholder = live.first;
  const second = box("second", "The text to compare it with", (text) => app.choose({ second: text }, "second"));
  const state = h("p", { class: "quiet", role: "status", "data-state": "opening" });
  const remarks = h("p", { class: "quiet" });
  const lanes = h("div", { class: "lanes" });
  const difference = h("p", { class: "differs", "aria-live": "polite" });
  const words = h("div", {});
  const changed = h("p", { class: "quiet" });
  const panel = new HeadPanel(app);
  const squares = new Squares(
    app,
    "Heads of this model",
    "A head is a part of the model that decides, for each word, which other words it reads. Choose one to change it. " +
      "“Leave each out” colours heads by what happens to the whole model without each: red where the number falls, " +
      "blue where it rises.",
    "data-change",
  );
  const result = h("p", { class: "left-out", "aria-live": "polite" });
  const guess = h("button", { type: "button", "data-do": "guess", click: () => app.choose({ guess: app.now().head }) });
  const each = h(
    "button",
    {
      type: "button",
      "data-do": "each",
      click: () => void live.lanes?.leaveEachOut(headNames(run()), app.now().guess),
    },
    "Leave each out",
  );
  const reset = h(
    "button",
    { type: "button", "data-do": "reset", click: () => app.choose({ changes: "", guess: "" }) },
    "Reset heads",
  );
  const run = (): Run => app.page.runs[0] as Run;
  const does = h("div", { class: "toggles" }, guess, each, reset);
  const boxes = h("div", { class: "boxes" }, typed, second);
  const element = h(
    "div",
    { class: "view living" },
    boxes,
    state,
    remarks,
    h(
      "div",
      { class: "beside" },
      h("div", {}, lanes, difference, words, changed),
      h("div", {}, panel.element, does, result, squares.element),
    ),
    h("p", { class: "quiet" }, weightsInWords(live.weights)),
  );

  const putIn = (area: HTMLTextAreaElement, text: string) => {
    if (document.activeElement !== area && area.value !== text) area.value = text;
  };

  return {
    element,
    update(now, before) {
      const { session } = live;
      putIn(typed, live.textOf(now));
      putIn(second, live.secondOf(now));
      second.hidden = !live.lanes?.question.compares;
      const changes = readChanges(now.changes, run());
      state.dataset.state = session.state.is;
      state.textContent = stateInWords(session.state, session.milliseconds);
      const ready = live.lanes !== null;
      each.disabled = guess.disabled = !ready;
      guess.textContent = now.guess ? `Your guess: ${titleOfNode(run(), now.guess)}` : "Guess: this head matters most";
      set(guess, "aria-pressed", now.guess !== "" && now.guess === now.head);
      panel.update(now);
      const why = live.lanes?.why || live.why;
      remarks.textContent = visible(why || live.lanes?.whole?.remarks.join(" ") || "");
      remarks.className = why ? "wrong" : "quiet";
      tell(live.lanes?.whole ?? null, live.lanes?.changed ?? null, changes.size > 0);
      changed.textContent = changes.size > 0 ? `Changed: ${changesInWords(run(), changes)}.` : "";
      const leftOut = live.lanes?.leftOut ?? null;
      result.textContent = leftOut ? leftOutInWords(run(), leftOut) : "";
      squares.build(liveBands(run(), leftOut, changes), fullLoss(leftOut));
      squares.choose(now.head);
      if (!before) requestAnimationFrame(() => squares.reveal(now.head));
    },
  };

  function tell(whole: Said | null, other: Said | null, anyChange: boolean): void {
    const question = live.lanes?.question;
    if (!question) {
      lanes.replaceChildren();
      difference.textContent = "";
      words.replaceChildren();
      return;
    }
    lanes.replaceChildren(
      lane("The whole model", whole, null),
      lane("With your changes", anyChange ? other : whole, whole),
    );
    difference.textContent = whole
      ? differenceInWords(question.measure, numberOf(whole), anyChange && other ? numberOf(other) : null)
      : "";
    const losses = whole ? lossesOf(whole, other) : [];
    words.replaceChildren(
      ...(losses.length > 0 && other
        ? [
            h(
              "p",
              { class: "quiet" },
              "What the whole model said, red where log p of a word falls, blue where it rises:",
            ),
            scoredLine(losses, Math.max(1, fullScore(losses)), app.theme()),
            h("p", { class: "quiet numbers" }, mostInWords(losses)),
          ]
        : []),
    );
  }
}
