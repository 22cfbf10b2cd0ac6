// What the reader changed in heads, as one line that a link holds:
//
//   encoder.0.self_attention.1=0 decoder.1.cross_attention.2=0.5 encoder.1.self_attention.0=uniform
//
// A number is the factor on what the head gives, 0 leaves it out; a word is the rule that its weights are replaced by.
import { findHead } from "../names";
import type { Run } from "../page";
import type { Changes } from "./library";

export const rules = ["uniform", "previous", "first"] as const;
export type Rule = (typeof rules)[number];
export type Change = number | Rule;
/** By head; a head that is not there is as it was. */
export type HeadChanges = ReadonlyMap<string, Change>;

/** The largest factor. */
export const mostGate = 2;

function changeOf(text: string): Change | null {
  const rule = rules.find((one) => one === text);
  if (rule) return rule;
  const factor = /^\d(\.\d{1,2})?$/.test(text) ? Number(text) : Number.NaN;
  return factor >= 0 && factor <= mostGate && factor !== 1 ? factor : null;
}

/** What a line says of heads that the run has; what it says wrongly is left out. */
export function readChanges(line: string, run: Run): HeadChanges {
  const changes = new Map<string, Change>();
  for (const one of line.split(" ")) {
    const [head = "", value = ""] = one.split("=");
    const change = changeOf(value);
    if (change !== null && findHead(run, head)) changes.set(head, change);
  }
  return changes;
}

export function writeChanges(changes: HeadChanges): string {
  return [...changes]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([head, change]) => `${head}=${change}`)
    .join(" ");
}

/** The changes with these heads changed too; null: they are again as they were. */
export function withHeads(changes: HeadChanges, heads: readonly string[], change: Change | null): HeadChanges {
  const next = new Map(changes);
  for (const head of heads) {
    if (change === null || change === 1) next.delete(head);
    else next.set(head, change);
  }
  return next;
}

/** As a call of the library takes them. */
export function callOf(changes: HeadChanges): Changes {
  const to: Required<Changes> = { mute: [], gate: [], replace: [] };
  for (const [head, change] of changes) {
    if (typeof change === "string") to.replace.push({ heads: head, rule: change });
    else if (change === 0) to.mute.push(head);
    else to.gate.push({ heads: head, by: change });
  }
  return to;
}

/** What a head then reads. */
export const readBy: { [rule in Rule]: string } = {
  uniform: "all words equally",
  previous: "the word before",
  first: "the first word",
};

/** "left out", "times 0.5", "reads all words equally" */
export function changeInWords(change: Change): string {
  if (typeof change === "string") return `reads ${readBy[change]}`;
  return change === 0 ? "left out" : `times ${change}`;
}
