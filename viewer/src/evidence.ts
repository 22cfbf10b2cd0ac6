// What the evidence says about heads: figures by head, the best relation, importance in words.
import { figure, visible } from "./names";
import type { Run } from "./page";
import type { Figure } from "./reader";
import type { Direction, HeadImportance, HeadStats, Importance, Relation, ScoreKind } from "./reports";

/** The entry of a list that is about a head. */
export function ofHead<T extends { head: string }>(all: T[] | undefined, head: string): T | null {
  return all?.find((one) => one.head === head) ?? null;
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

function column(
  id: string,
  title: string,
  about: string,
  unit: Column["unit"],
  pairs: Iterable<[string, Figure]>,
  largest = true,
): Column | null {
  const values = new Map<string, number>();
  for (const [head, value] of pairs) if (value !== null) values.set(head, value);
  return values.size === 0 ? null : { id, title, about, unit, values, largest };
}

const ways: { [direction in Direction]: string } = {
  to_head: "word → head",
  to_dependent: "head → word",
  read_by_head: "read by head",
};

/** "det, word → head" */
export const relationTitle = (one: Relation): string => `${one.relation}, ${ways[one.direction]}`;

/** The entries of relations, of all sentences or else of the best. */
export function relationEntries(run: Run): Relation[] {
  const { relations, best } = run.evidence.relations ?? { relations: [], best: [] };
  return relations.length > 0 ? relations : best;
}

/** Score minus the best fixed offset, less half the interval: what is sure of it. */
export function sureGain({ score, baseline, gain_half_width }: Relation): number | null {
  return score === null || baseline === null ? null : score - baseline - (gain_half_width ?? 0);
}

/** The relation of a head with the largest sure gain above 0, of those with at least 50 words or else 10. */
export function bestRelation(run: Run, head: string): Relation | null {
  for (const least of [50, 10]) {
    let best: Relation | null = null;
    let gain = 0;
    for (const one of byHead(run).get(head) ?? []) {
      if (one.relation === "all" || one.direction === "read_by_head" || one.support < least) continue;
      const its = sureGain(one);
      if (its !== null && its > gain) [best, gain] = [one, its];
    }
    if (best) return best;
  }
  return null;
}

const grouped = new WeakMap<Run, Map<string, Relation[]>>();

function byHead(run: Run): Map<string, Relation[]> {
  const before = grouped.get(run);
  if (before) return before;
  const made = new Map<string, Relation[]>();
  for (const one of relationEntries(run)) {
    const all = made.get(one.head);
    if (all) all.push(one);
    else made.set(one.head, [one]);
  }
  grouped.set(run, made);
  return made;
}

/** Relations that heads have figures for, the largest sure gain first. */
export function relationsOf(run: Run): Column[] {
  const groups = new Map<string, { entries: Relation[]; gain: number }>();
  for (const one of relationEntries(run)) {
    const key = `${one.relation}/${one.direction}`;
    const group = groups.get(key) ?? { entries: [], gain: -Infinity };
    group.entries.push(one);
    group.gain = Math.max(group.gain, sureGain(one) ?? -Infinity);
    groups.set(key, group);
  }
  return [...groups]
    .sort((a, b) => b[1].gain - a[1].gain)
    .map(([key, group]) =>
      column(
        `relation:${key}`,
        relationTitle(group.entries[0] as Relation),
        "Words for which the head is right",
        "share",
        group.entries.map((one) => [one.head, one.score]),
      ),
    )
    .filter((one): one is Column => one !== null);
}

/** What the score of a text is, and its unit. */
const scores: { [kind in ScoreKind]: [what: string, unit: string] } = {
  translation: ["the log-probability of the translation", "nats"],
  "next-tokens": ["the log-probability of the text's tokens", "nats"],
  "masked-words": ["the log-probability of masked words", "nats"],
  labels: ["the logit of the text's label", "logits"],
  vectors: ["the cosine of the text's vector to the whole model's", "cosine"],
};

const unitOf = (report: Importance | null): string => (report ? scores[report.score][1] : "its unit");

const rankIn = (report: Importance, one: HeadImportance): string => `rank ${one.rank} of ${report.heads.length}`;

/** "falls by 0.012 ± 0.001 nats" */
function changeInWords(loss: number, half: Figure, unit: string): string {
  if (loss === 0) return "does not change";
  const interval = half === null ? "" : ` ± ${figure(half)}`;
  return `${loss > 0 ? "falls" : "rises"} by ${figure(Math.abs(loss))}${interval}${unit === "nats" ? " nats" : ""}`;
}

function ablationInWords(report: Importance, one: HeadImportance, loss: number): string {
  const [what, unit] = scores[report.score];
  const change = changeInWords(loss, one.importance_half_width, unit);
  const texts = report.sentences === 1 ? "this page's text" : `the ${report.sentences} texts of this page, on average`;
  return `Without it ${what} ${change} on ${texts}: ${rankIn(report, one)}.`;
}

/** What is known of a head's importance: a sentence for its ablation, and one for its gradient. */
export function importanceInWords(run: Run, head: string): string[] {
  const { ablation, importance, of } = run.evidence;
  const to: string[] = [];
  const gone = ofHead(ablation?.heads, head);
  if (ablation && gone && gone.importance !== null) to.push(ablationInWords(ablation, gone, gone.importance));
  const gradient = ofHead(importance?.heads, head);
  if (importance && gradient && gradient.importance !== null) {
    const mean = figure(gradient.importance);
    to.push(`By the gradient of its gate on ${visible(of)}: ${mean}, ${rankIn(importance, gradient)}.`);
  }
  return to;
}

/** The better accuracy of each head's two queries; means of heads are left out. */
function alignmentByHead(run: Run): Map<string, number> {
  const best = new Map<string, number>();
  for (const { head, accuracy } of run.evidence.alignment?.alignment ?? []) {
    if (accuracy !== null && !head.endsWith(".mean")) best.set(head, Math.max(accuracy, best.get(head) ?? 0));
  }
  return best;
}

/** The columns of the table and of the finder. */
export function columnsOf(run: Run): Column[] {
  const { evidence } = run;
  const stats = evidence.stats?.heads ?? [];
  const circuits = evidence.circuits?.circuits ?? [];
  const plain = (of: (one: HeadStats) => Figure) => stats.map((one): [string, Figure] => [one.head, of(one)]);
  const at = (offset: string) => plain((one) => one.at_offset[offset] ?? null);
  const importance = (report: Importance | null) =>
    (report?.heads ?? []).map((one): [string, Figure] => [one.head, one.importance]);
  return [
    column(
      "relation",
      "best relation",
      "Words for which the head is right, of the relation that it is surest of",
      "share",
      evidence.relations ? plain(({ head }) => bestRelation(run, head)?.score ?? null) : [],
    ),
    column(
      "alignment",
      "alignment",
      "Aligned words whose largest weight is on a word that they are aligned with",
      "share",
      alignmentByHead(run),
    ),
    column(
      "importance",
      "importance",
      `How fast the score changes with the head's gate: mean |∂score/∂gate|, ${unitOf(evidence.importance)}`,
      "number",
      importance(evidence.importance),
    ),
    column(
      "ablation",
      "loss without it",
      `What the score of these texts loses without the head, ${unitOf(evidence.ablation)}`,
      "number",
      importance(evidence.ablation),
    ),
    column("previous", "previous token", "Weight on the token before", "share", at("-1")),
    column("same", "same token", "Weight on the token itself, or at the same place", "share", at("+0")),
    column("next", "next token", "Weight on the token after", "share", at("+1")),
    column(
      "sink",
      "sink",
      "Weight on the first key",
      "share",
      plain((one) => one.on_first),
    ),
    column(
      "separators",
      "separators",
      "Weight on the other special tokens",
      "share",
      plain((one) => one.on_separators),
    ),
    column(
      "entropy",
      "entropy",
      "Entropy of the weights, of the largest that is possible: 0 % is one token, 100 % all alike",
      "share",
      plain((one) => one.entropy_share),
      false,
    ),
    column(
      "distance",
      "distance",
      "Mean distance from query to key",
      "tokens",
      plain((one) => one.distance),
    ),
    column(
      "induction",
      "induction",
      "Weight on what followed the same token before, in repeated random tokens",
      "share",
      plain((one) => one.induction),
    ),
    column(
      "rarest",
      "rarest word",
      "Queries that read most the sentence's rarest word",
      "share",
      plain((one) => one.on_rarest),
    ),
    column(
      "copying",
      "copying",
      "Copying score: 1: reading a token makes it more probable, −1: less",
      "signed",
      circuits.map((one) => [one.head, one.copying]),
    ),
    column(
      "rank",
      "rank of QK",
      "Effective rank of W_Q W_K^T",
      "number",
      circuits.map((one) => [one.head, one.query_key.effective_rank]),
      false,
    ),
  ].filter((one): one is Column => one !== null);
}
