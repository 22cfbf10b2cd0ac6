// What is chosen is one value that is never changed but replaced; the fragment of the address says the same.
import { givenNames } from "./given";
import { findHead } from "./names";
import type { Page, Run, Text } from "./page";

export const views = [
  "live",
  "text",
  "table",
  "head",
  "attribution",
  "contributions",
  "lens",
  ...givenNames,
  "walk",
  "compare",
  "time",
] as const;
export type View = (typeof views)[number];

export interface Choice {
  view: View;
  run: number;
  /** The run that `run` is compared with. */
  other: number;
  text: number;
  /** "encoder.3.self_attention.1" */
  head: string;
  query: number;
  /** The key of a chosen pair. */
  key: number | null;
  /** Whether sinks are left out, pieces are merged into words, and weights are multiplied by ‖v W^O‖. */
  hide: boolean;
  words: boolean;
  lengths: boolean;
  /** The finder: a column of figures, "" for the order of the model; and letters of a name. */
  by: string;
  name: string;
  /**
   * The step of the walk, and a cell "NAME:row:column" whose sum is open; "lens:PLACE:COLUMN": a cell of the lens;
   * "edge:NUMBER": an edge of the circuit, from the strongest, 0, on.
   */
  step: number;
  cell: string;
  /** How many edges of the circuit are shown, the strongest; 0: as many as can be read. */
  edges: number;
  /** Of a live page: the reader's text, "" for the first of the page, and one that it is compared with. */
  typed: string;
  second: string;
  /** What is changed in heads (live/changes.ts), and the head that the reader guessed to matter most. */
  changes: string;
  guess: string;
}

export function firstChoice(page: Page): Choice {
  const { run, text, head, query } = page.opens;
  const start: Choice = {
    view: page.live ? "live" : "text",
    run,
    other: page.mode === "time" ? page.runs.length - 1 : 1,
    text,
    head,
    query,
    key: null,
    hide: false,
    words: false,
    lengths: false,
    by: "",
    name: "",
    step: 0,
    cell: "",
    edges: 0,
    typed: "",
    second: "",
    changes: "",
    guess: "",
  };
  return settled(start, page);
}

/** The views that the page has data for. */
export function viewsOf(page: Page): View[] {
  return views.filter((view) => {
    if (view === "live") return page.live;
    if (view === "attribution" || view === "contributions" || view === "lens")
      return page.runs.some((run) => run.texts.some((text) => text[view] !== null));
    const given = givenNames.find((name) => name === view);
    if (given) return page.runs.some((run) => run[given] !== null);
    if (view === "walk") return page.runs.some((run) => run.walk !== null && run.walk.steps.length > 0);
    if (view === "compare") return page.runs.length > 1;
    if (view === "time") return page.mode === "time" && page.runs.length > 1;
    return true;
  });
}

/** How many queries and keys the head's map has. */
export function sizes(run: Run, text: Text, head: string): { queries: number; keys: number } {
  const at = findHead(run, head);
  const maps = at && text.maps[at.attention];
  return maps ?? { queries: 0, keys: 0 };
}

const within = (value: number, count: number): number => Math.min(Math.max(0, value), Math.max(0, count - 1));

/** The choice with everything that the page does not have put right. */
export function settled(choice: Choice, page: Page): Choice {
  const view = viewsOf(page).includes(choice.view) ? choice.view : "text";
  const run = within(choice.run, page.runs.length);
  const of = page.runs[run] as Run;
  const text = within(choice.text, of.texts.length);
  const first = of.attentions[0] as Run["attentions"][number];
  const head = findHead(of, choice.head)
    ? choice.head
    : findHead(of, page.opens.head)
      ? page.opens.head
      : `${first.name}.0`;
  const { queries, keys } = sizes(of, of.texts[text] as Text, head);
  const query = within(choice.query, queries);
  const key = choice.key === null || choice.key >= keys || choice.key < 0 ? null : choice.key;
  const step = within(choice.step, 10);
  const other = within(choice.other, page.runs.length);
  return { ...choice, view, run, other, text, head, query, key, step };
}

const numbers = ["run", "other", "text", "query", "step", "edges"] as const;
const flags = ["hide", "words", "lengths"] as const;
const words = ["by", "name", "cell", "typed", "second", "changes", "guess"] as const;

export function fragmentOf(choice: Choice): string {
  const to = new URLSearchParams();
  to.set("view", choice.view);
  to.set("head", choice.head);
  to.set("query", String(choice.query));
  if (choice.key !== null) to.set("key", String(choice.key));
  if (choice.view === "compare") to.set("other", String(choice.other));
  for (const name of ["run", "text", "step", "edges"] as const)
    if (choice[name] !== 0) to.set(name, String(choice[name]));
  for (const name of flags) if (choice[name]) to.set(name, "1");
  for (const name of words) if (choice[name] !== "") to.set(name, choice[name]);
  return `#${to.toString()}`;
}

/** `base` with what a fragment says; what it says wrongly is left out. */
export function choiceOf(fragment: string, base: Choice): Choice {
  const from = new URLSearchParams(fragment.replace(/^#/, ""));
  const to: Choice = { ...base };
  const view = views.find((one) => one === from.get("view"));
  if (view) to.view = view;
  to.head = from.get("head") ?? base.head;
  for (const name of numbers) {
    const value = from.get(name);
    if (value !== null && /^\d{1,9}$/.test(value)) to[name] = Number(value);
  }
  const key = from.get("key");
  if (key !== null && /^\d{1,9}$/.test(key)) to.key = Number(key);
  for (const name of flags) if (from.has(name)) to[name] = from.get(name) === "1";
  for (const name of words) to[name] = from.get(name) ?? base[name];
  return to;
}

/** What was chosen, and the choices before and after it. */
export interface History {
  readonly past: readonly Choice[];
  readonly now: Choice;
  readonly future: readonly Choice[];
}

export const begin = (now: Choice): History => ({ past: [], now, future: [] });

export const same = (a: Choice, b: Choice): boolean => fragmentOf(a) === fragmentOf(b);

/** With `merge`, as while a slider moves, the change becomes one with the change before. */
export function chosen(history: History, next: Choice, merge = false): History {
  if (same(history.now, next)) return history;
  const past = merge && history.past.length > 0 ? history.past : [...history.past, history.now].slice(-200);
  return { past, now: next, future: [] };
}

export function undone(history: History): History {
  const before = history.past[history.past.length - 1];
  if (!before) return history;
  return { past: history.past.slice(0, -1), now: before, future: [history.now, ...history.future] };
}

export function redone(history: History): History {
  const after = history.future[0];
  if (!after) return history;
  return { past: [...history.past, history.now], now: after, future: history.future.slice(1) };
}
