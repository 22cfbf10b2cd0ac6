// What the verbs of `multihead heads` said about the heads, read field by field from their JSON.
import { figure, visible } from "./names";
import type { Json, Run } from "./page";

export type Fields = { [key: string]: Json };

export const object = (value: Json | undefined): Fields | null =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : null;
export const list = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : []);
export const number = (value: Json | undefined): number | null => (typeof value === "number" ? value : null);
export const text = (value: Json | undefined): string | null => (typeof value === "string" ? value : null);

export function entries(value: Json | undefined, name: string): Fields[] {
  return list(object(value)?.[name]).map(object).filter((one): one is Fields => one !== null);
}

/** The entry of a list that is about a head. */
export function ofHead(value: Json | undefined, name: string, head: string): Fields | null {
  return entries(value, name).find((one) => one.head === head) ?? null;
}

/** A column of figures, by head; what a head has no figure for is not in `values`. */
export interface Column {
  id: string;
  title: string;
  /** What it is, in a sentence. */
  about: string;
  /** How its values are written and what a full bar is. */
  unit: "share" | "nats" | "tokens" | "number" | "signed";
  values: Map<string, number>;
  /** Whether the largest come first when heads are put in order. */
  largest: boolean;
}

function column(id: string, title: string, about: string, unit: Column["unit"], pairs: Iterable<[string, number | null]>, largest = true): Column | null {
  const values = new Map<string, number>();
  for (const [head, value] of pairs) if (value !== null) values.set(head, value);
  return values.size === 0 ? null : { id, title, about, unit, values, largest };
}

const nameOf = (one: Fields): string => text(one.head) ?? "";

const ways: { [direction: string]: string } = { to_head: "word → head", to_dependent: "head → word", read_by_head: "read by head" };

/** "det, word → head" */
export function relationTitle(one: Fields): string {
  const direction = text(one.direction) ?? "";
  return `${text(one.relation) ?? ""}, ${ways[direction] ?? direction}`;
}

/** The entries of relations, of all sentences or else of the best. */
export function relationEntries(run: Run): Fields[] {
  const all = entries(run.evidence.relations, "relations");
  return all.length > 0 ? all : entries(run.evidence.relations, "best");
}

/** Score minus the best fixed offset, less half the interval: what is sure of it. */
export function sureGain(one: Fields): number | null {
  const score = number(one.score);
  const baseline = number(one.baseline);
  if (score === null || baseline === null) return null;
  return score - baseline - (number(one.gain_half_width) ?? 0);
}

/** The relation of a head with the largest sure gain above 0, of those with at least 50 words or else 10. */
export function bestRelation(run: Run, head: string): Fields | null {
  for (const least of [50, 10]) {
    let best: Fields | null = null;
    let gain = 0;
    for (const one of byHead(run).get(head) ?? []) {
      if (one.relation === "all" || one.direction === "read_by_head" || (number(one.support) ?? 0) < least) continue;
      const its = sureGain(one);
      if (its !== null && its > gain) [best, gain] = [one, its];
    }
    if (best) return best;
  }
  return null;
}

const grouped = new WeakMap<Run, Map<string, Fields[]>>();

function byHead(run: Run): Map<string, Fields[]> {
  const before = grouped.get(run);
  if (before) return before;
  const made = new Map<string, Fields[]>();
  for (const one of relationEntries(run)) {
    const all = made.get(nameOf(one));
    if (all) all.push(one);
    else made.set(nameOf(one), [one]);
  }
  grouped.set(run, made);
  return made;
}

/** Relations that heads have figures for, the largest sure gain first. */
export function relationsOf(run: Run): Column[] {
  const groups = new Map<string, { entries: Fields[]; gain: number }>();
  for (const one of relationEntries(run)) {
    const key = `${text(one.relation) ?? ""}/${text(one.direction) ?? ""}`;
    const group = groups.get(key) ?? { entries: [], gain: -Infinity };
    group.entries.push(one);
    group.gain = Math.max(group.gain, sureGain(one) ?? -Infinity);
    groups.set(key, group);
  }
  return [...groups].sort((a, b) => b[1].gain - a[1].gain).map(([key, group]) =>
    column(`relation:${key}`, relationTitle(group.entries[0] as Fields), "Words for which the head is right", "share",
      group.entries.map((one) => [nameOf(one), number(one.score)])))
    .filter((one): one is Column => one !== null);
}

/** What the score of a text is, and its unit. */
const scores: { [kind: string]: [string, string] } = {
  translation: ["the log-probability of the translation", "nats"],
  "next-tokens": ["the log-probability of the text's tokens", "nats"],
  "masked-words": ["the log-probability of masked words", "nats"],
  vectors: ["the cosine of the text's vector to the whole model's", "cosine"],
};

function scoreOf(report: Json): [string, string] {
  return scores[text(object(report)?.score) ?? ""] ?? ["the score", "its unit"];
}

const unitOf = (report: Json): string => scoreOf(report)[1];

/** What is known of a head's importance: a sentence for its ablation, and one for its gradient. */
export function importanceInWords(run: Run, head: string): string[] {
  const { ablation, importance, of } = run.evidence;
  const place = (report: Json, one: Fields) => `rank ${number(one.rank) ?? "?"} of ${entries(report, "heads").length}`;
  const to: string[] = [];
  const gone = ofHead(ablation, "heads", head);
  const loss = number(gone?.importance);
  if (gone && loss !== null) {
    const [what, unit] = scoreOf(ablation);
    const half = number(gone.importance_half_width);
    const size = `${figure(Math.abs(loss))}${half === null ? "" : ` ± ${figure(half)}`}${unit === "nats" ? " nats" : ""}`;
    const change = loss === 0 ? "does not change" : `${loss > 0 ? "falls" : "rises"} by ${size}`;
    const texts = number(object(ablation)?.sentences);
    to.push(`Without it ${what} ${change} on ${texts === 1 ? "this page's text" : `the ${texts ?? ""} texts of this page, on average`}: ${place(ablation, gone)}.`);
  }
  const gradient = ofHead(importance, "heads", head);
  const mean = number(gradient?.importance);
  if (gradient && mean !== null) to.push(`By the gradient of its gate on ${visible(of)}: ${figure(mean)}, ${place(importance, gradient)}.`);
  return to;
}

/** The columns of the table and of the finder. */
export function columnsOf(run: Run): Column[] {
  const stats = entries(run.evidence.stats, "heads");
  const at = (key: string) => stats.map((one): [string, number | null] => [nameOf(one), number(object(one.at_offset)?.[key])]);
  const plain = (key: string) => stats.map((one): [string, number | null] => [nameOf(one), number(one[key])]);
  const links = entries(run.evidence.alignment, "alignment");
  const bestLink = new Map<string, number>();
  for (const one of links) {
    const accuracy = number(one.accuracy);
    if (accuracy !== null) bestLink.set(nameOf(one), Math.max(accuracy, bestLink.get(nameOf(one)) ?? 0));
  }
  bestLink.delete("mean");
  const circuits = entries(run.evidence.circuits, "circuits");
  const heads = stats.map(nameOf);
  const importance = (name: "importance" | "ablation") =>
    entries(run.evidence[name], "heads").map((one): [string, number | null] => [nameOf(one), number(one.importance)]);
  return [
    column("relation", "best relation", "Words for which the head is right, of the relation that it is surest of", "share",
      run.evidence.relations ? heads.map((head) => [head, number(bestRelation(run, head)?.score)]) : []),
    column("alignment", "alignment", "Aligned words whose largest weight is on a word that they are aligned with", "share", bestLink),
    column("importance", "importance", `How fast the score changes with the head's gate: mean |∂score/∂gate|, ${unitOf(run.evidence.importance)}`, "number", importance("importance")),
    column("ablation", "loss without it", `What the score of these texts loses without the head, ${unitOf(run.evidence.ablation)}`, "number", importance("ablation")),
    column("previous", "previous token", "Weight on the token before", "share", at("-1")),
    column("same", "same token", "Weight on the token itself, or at the same place", "share", at("+0")),
    column("next", "next token", "Weight on the token after", "share", at("+1")),
    column("sink", "sink", "Weight on the first key", "share", plain("on_first")),
    column("separators", "separators", "Weight on the other special tokens", "share", plain("on_separators")),
    column("entropy", "entropy", "Entropy of the weights, of the largest that is possible: 0 % is one token, 100 % all alike", "share", plain("entropy_share"), false),
    column("distance", "distance", "Mean distance from query to key", "tokens", plain("distance")),
    column("induction", "induction", "Weight on what followed the same token before, in repeated random tokens", "share", plain("induction")),
    column("rarest", "rarest word", "Queries that read most the sentence's rarest word", "share", plain("on_rarest")),
    column("copying", "copying", "Copying score: 1: reading a token makes it more probable, −1: less", "signed",
      circuits.map((one) => [nameOf(one), number(one.copying)])),
    column("rank", "rank of QK", "Effective rank of W_Q W_K^T", "number",
      circuits.map((one) => [nameOf(one), number(object(one.query_key)?.effective_rank)]), false),
  ].filter((one): one is Column => one !== null);
}
