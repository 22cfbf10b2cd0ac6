// Which heads of cross-attention align words: squares by layer, figures in words, and the words of the page's own text
// with the source words that these heads read.
import { bandsOfHeads, type PartBand } from "./contributions";
import type { Aligned, AlignedQuery, AlignerScore, LinkScore } from "./given";
import { groupsOf, mapOf, type Group } from "./merge";
import { findHead, percent, shown, thousands } from "./names";
import { titleOfNode } from "./node";
import type { Run, Text, Tokens } from "./page";
import type { HeadWeights } from "./weights";

/** Of a word. */
export const rowsOf: { [query in AlignedQuery]: string } = {
  predicts: "the row that predicts it",
  reads: "the row that has just read it",
};

const isMean = ({ head }: AlignerScore): boolean => head.endsWith(".mean");
const byError = (a: LinkScore, b: LinkScore): number => a.error_rate - b.error_rate;

/** Each head, and the mean of a layer's heads, by the row that aligns better; from the lowest error rate. */
export function rankedAligners({ alignment }: Aligned): AlignerScore[] {
  const better = new Map<string, AlignerScore>();
  for (const one of alignment) {
    const before = better.get(one.head);
    if (!before || byError(one, before) < 0) better.set(one.head, one);
  }
  return [...better.values()].sort(byError);
}

/** The heads that align: those that were chosen, or of a report with a gold alignment the best one. */
export function alignersOf(its: Aligned): { heads: string[]; query: AlignedQuery } {
  if (its.chosen) return its.chosen;
  const best = rankedAligners(its).find((one) => !isMean(one));
  return { heads: best ? [best.head] : [], query: best?.query ?? "predicts" };
}

/** 1 − AER of each head, by the row that aligns better. */
export function alignerBandsOf(run: Run, its: Aligned): PartBand[] {
  const chosen = its.chosen?.heads ?? [];
  const better = new Map(rankedAligners(its).map((one) => [one.head, one]));
  const inOrder = [...new Set(its.alignment.map(({ head }) => head))];
  const heads = inOrder.map((head) => ({
    head,
    value: 1 - (better.get(head)?.error_rate ?? 1),
    ...(chosen.includes(head) ? { framed: "chosen to align" } : {}),
  }));
  return bandsOfHeads(run, heads);
}

/** "layer 1, head 2", "layer 1, mean of heads": where all heads are of cross-attention. */
export function inShort(name: string): string {
  const [, layer, head] = /^decoder\.(\d+)\.cross_attention\.(\d+|mean)$/.exec(name) ?? [];
  if (layer === undefined) return shown(name);
  return `layer ${layer}, ${head === "mean" ? "mean of heads" : `head ${head}`}`;
}

/** "the mean of 3 heads, alignment error rate 12 %" */
export function alignersInWords(run: Run, its: Aligned | null): string {
  const [first, ...more] = its ? alignersOf(its).heads : [];
  const score = its?.chosen ?? (its && rankedAligners(its).find(({ head }) => head === first));
  if (!first || !score) return "";
  const who = more.length === 0 ? titleOfNode(run, first) : `the mean of ${1 + more.length} heads`;
  return `${who}, alignment error rate ${percent(score.error_rate)}`;
}

const figuresInWords = ({ precision, recall, error_rate }: LinkScore): string =>
  `precision ${percent(precision)}, recall ${percent(recall)}, error rate ${percent(error_rate)}`;

/** What the head gets by its better row, and its rank among all heads. */
export function headAlignsInWords(run: Run, its: Aligned, head: string): string {
  const ranked = rankedAligners(its).filter((one) => !isMean(one));
  const rank = ranked.findIndex((one) => one.head === head);
  const best = ranked[rank];
  if (!best) return "This head is none of cross-attention, so nothing was measured of it: choose one of the squares.";
  return (
    `${titleOfNode(run, head)} links a word best by ${rowsOf[best.query]}: ${figuresInWords(best)}, ` +
    `number ${rank + 1} of ${ranked.length} heads.`
  );
}

/** What it gets by its other row, and whether it was chosen; empty: it was not measured. */
export function otherRowInWords(its: Aligned, head: string): string {
  const best = rankedAligners(its).find((one) => one.head === head);
  const other = its.alignment.find((one) => one.head === head && one.query !== best?.query);
  if (!other) return "";
  const chosen = its.chosen?.heads.includes(head) ? " It is one of the heads that were chosen to align." : "";
  return `By ${rowsOf[other.query]}: ${figuresInWords(other)}.${chosen}`;
}

/** "best fixed offset: 2 words before" */
export function offsetInWords({ alignment_baseline: { offset } }: Aligned): string {
  const size = Math.abs(offset);
  const where = `${size} word${size === 1 ? "" : "s"} ${offset < 0 ? "before" : "further on"}`;
  return `best fixed offset: ${offset === 0 ? "the same place" : where}`;
}

export function meaningOfAligners(its: Aligned): string {
  const reference = its.chosen
    ? "The links that they are compared with are the model's own, and no alignment that anybody made: a target word " +
      "goes with the source word without which its log-probability falls most, if by more than 0.1 nats (the " +
      "prediction difference of Li et al. 2019). "
    : "The links that they are compared with are those of a gold alignment. ";
  const texts = its.targets === "given" ? "their translations as given" : `${its.targets} of the model`;
  return (
    "A head links each target word with the source word that has its largest weight, or with none if the end token " +
    "has it. A word's row of weights is that of the decoder's position which predicts it, or of the next one, which " +
    `has just read it. ${reference}AER is the alignment error rate, 0 is best. Where a head reads does not yet say ` +
    "that the model takes the word from there. " +
    `Measured on ${thousands(its.sentences)} sentence${its.sentences === 1 ? "" : "s"} with ${texts}, ` +
    `${thousands(its.alignment_baseline.support)} aligned words.`
  );
}

/** A word of the translation, and the source word that it is linked with; null: with none. */
export interface LinkedWord {
  word: string;
  source: string | null;
  weight: number;
}

const isWord =
  ({ tokens }: Tokens) =>
  ({ first }: Group): boolean =>
    (tokens[first]?.word ?? -1) >= 0;

function written({ text, tokens }: Tokens, { first, last }: Group): string {
  const [begin, end] = [tokens[first]?.begin ?? 0, tokens[last]?.end ?? 0];
  return shown([...text].slice(begin, end).join("").trim() || (tokens[first]?.label ?? ""));
}

/** The mean of the weights of several heads, which all have the same queries and keys; null: there are no heads. */
function meanOf(all: HeadWeights[]): HeadWeights | null {
  const [first] = all;
  if (!first) return null;
  const a = first.a.map((_, i) => all.reduce((sum, one) => sum + (one.a[i] as number), 0) / all.length);
  return { ...first, a };
}

/** The links of a text's words by the mean weights of the heads that align. */
export function linkedWords(
  run: Run,
  text: Text,
  its: Aligned,
  weightsOf: (attention: number, head: number) => HeadWeights,
): LinkedWord[] {
  const { heads, query } = alignersOf(its);
  const places = heads.map((head) => findHead(run, head)).filter((at) => at !== null);
  const mean = meanOf(places.map(({ attention, head }) => weightsOf(attention, head)));
  const rows = query === "predicts" ? text.predicted : text.target;
  if (!mean || !rows) return [];
  const words = groupsOf(rows, true).filter(isWord(rows));
  const keys = groupsOf(text.source, true);
  const { values } = mapOf(mean, words, keys, { hidden: null, lengths: null });
  return words.map((word, r) => {
    const weights = values.subarray(r * keys.length, (r + 1) * keys.length);
    let [best, most, elsewhere]: [Group | null, number, number] = [null, 0, 0];
    keys.forEach((key, c) => {
      const weight = weights[c] as number;
      if (!isWord(text.source)(key)) elsewhere += weight;
      else if (weight > most) [best, most] = [key, weight];
    });
    // All that is no word counts as one more source, as in the measure.
    const linked = best !== null && most > elsewhere;
    return {
      word: written(rows, word),
      source: linked && best ? written(text.source, best) : null,
      weight: linked ? most : elsewhere,
    };
  });
}
