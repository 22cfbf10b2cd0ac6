// What views share: the page, its weights, what is chosen and how to choose.
import { columnsOf, relationsOf, type Column } from "./evidence";
import type { Theme } from "./draw/colours";
import type { Live } from "./live/live";
import { groupsOf, mapOf, sinksOf, type Group, type Map2 } from "./merge";
import { findHead } from "./names";
import type { Attention, Maps, Page, Run, Text, Tokens } from "./page";
import type { Choice } from "./state";
import type { Place, Weights } from "./weights";

export interface App {
  readonly page: Page;
  readonly weights: Weights;
  /** The model in the page; null: it has none. */
  readonly live: Live | null;
  theme(): Theme;
  now(): Choice;
  choose(change: Partial<Choice>, merge?: string): void;
}

/** One view on the page. `before` is null when everything must be drawn. */
export interface Show {
  element: HTMLElement;
  update(now: Choice, before: Choice | null): void;
}

/** The chosen head with all that belongs to it. */
export interface Chosen {
  run: Run;
  text: Text;
  attention: Attention;
  maps: Maps;
  place: Place;
  queries: Tokens;
  keys: Tokens;
  /** Which of the two texts they are. */
  querySide: Side;
  keySide: Side;
}

export type Side = "source" | "target";

export function sidesOf(of: Attention, text: Text): [Side, Side] {
  if (of.kind === "cross") return ["target", "source"];
  return of.kind === "decoder" && text.target ? ["target", "target"] : ["source", "source"];
}

/** The head of a choice; `run` may be another than the chosen one. Null where that run has no such head. */
export function headOf(app: App, choice: Choice, run = choice.run, head = choice.head): Chosen | null {
  const its = app.page.runs[run];
  const at = its && findHead(its, head);
  const text = its?.texts[choice.text];
  if (!its || !at || !text) return null;
  const attention = its.attentions[at.attention] as Attention;
  const [querySide, keySide] = sidesOf(attention, text);
  return {
    run: its,
    text,
    attention,
    maps: text.maps[at.attention] as Maps,
    place: { run, text: choice.text, attention: at.attention, head: at.head },
    queries: (attention.kind === "cross" && text.predicted) || (text[querySide] as Tokens),
    keys: text[keySide] as Tokens,
    querySide,
    keySide,
  };
}

export interface Shown {
  map: Map2;
  queries: Group[];
  keys: Group[];
  /** The weight that is drawn in full: 1, or the largest product with a length. */
  full: number;
  signed: boolean;
}

/** Of the page that is shown: a live page may get other weights. */
const lately = new WeakMap<Weights, Map<string, Shown>>();

/** The map of a head as the toggles want it. */
export function shownOf(app: App, choice: Choice, head: Chosen): Shown {
  const { run, text, attention, head: number } = head.place;
  const key = [run, text, attention, number, choice.hide, choice.words, choice.lengths].join(" ");
  const kept = lately.get(app.weights) ?? new Map<string, Shown>();
  lately.set(app.weights, kept);
  const before = kept.get(key);
  if (before) return before;
  const queries = groupsOf(head.queries, choice.words);
  const keys = groupsOf(head.keys, choice.words);
  const lengths = choice.lengths ? app.weights.valueLengths(head.place) : null;
  const hidden = choice.hide ? sinksOf(head.keys, head.attention.causal) : null;
  const weights = app.weights.of(head.place);
  const plain = !choice.words && !hidden && !lengths;
  const map = plain
    ? { rows: weights.queries, columns: weights.keys, values: weights.a }
    : mapOf(weights, queries, keys, { hidden, lengths });
  const full = lengths ? map.values.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1 : 1;
  const shown = { map, queries, keys, full, signed: weights.signed };
  for (const old of kept.keys()) if (kept.size > 5) kept.delete(old);
  kept.set(key, shown);
  return shown;
}

const columns = new WeakMap<Run, { all: Column[]; relations: Column[] }>();

/** The figures of a run's heads, and the finer ones by relation. */
export function figuresOf(run: Run): { all: Column[]; relations: Column[] } {
  const before = columns.get(run);
  if (before) return before;
  const made = { all: columnsOf(run), relations: relationsOf(run) };
  columns.set(run, made);
  return made;
}

/** A column by its id; "-ID" is the same with its other end first. */
export function columnOf(run: Run, id: string): Column | null {
  const { all, relations } = figuresOf(run);
  const plain = id.replace(/^-/, "");
  const found = all.find((one) => one.id === plain) ?? relations.find((one) => one.id === plain) ?? null;
  return found && id !== plain ? { ...found, largest: !found.largest } : found;
}
