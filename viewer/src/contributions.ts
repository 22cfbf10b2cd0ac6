// What each head and layer adds to what a model says of a text: squares by layer, sums, and the words that heads read.
import type { Contributed, ContributedPart } from "./contributed";
import { bandNames, figure, findHead, placeInWords, shown, splitHead } from "./names";
import { found } from "./none";
import type { Attention, Run, Text } from "./page";
import { type Scored, writerOf } from "./written";

/** A part in the grid. */
export interface Square {
  name: string;
  /** "Decoder 3, head 5", "Feed-forward layer 3" */
  title: string;
  /** Null: it is not known. */
  value: number | null;
  /** Why it has a frame, in words; without: it has none. */
  framed?: string;
}

/** What stands in a head's square. */
export interface HeadFigure extends Omit<Square, "name" | "title"> {
  head: string;
}

export interface LayerOfParts {
  layer: number;
  heads: Square[];
  feedForward: Square | null;
}

export interface PartBand {
  kind: Attention["kind"];
  title: string;
  /** Of heads alone. */
  columns: number;
  hasFeedForward: boolean;
  layers: LayerOfParts[];
}

export interface SumLine {
  title: string;
  value: number;
}

const kinds: Attention["kind"][] = ["encoder", "decoder", "cross"];

export function titleOfPart(run: Run, { name, kind, layer }: ContributedPart): string {
  const at = findHead(run, name);
  if (at) return placeInWords(run.attentions[at.attention] as Attention, at.head);
  if (kind === "feed_forward") return `Feed-forward layer ${layer ?? ""}`;
  return { embeddings: "Embeddings", biases: "Biases", output: "The output layer's own", head: shown(name) }[kind];
}

/** Heads in bands of their kinds, layer under layer; feed-forward layers stand in the first one. */
export function partBandsOf(run: Run, { parts }: Contributed): PartBand[] {
  const squareOf = (part: ContributedPart): Square => ({
    name: part.name,
    title: titleOfPart(run, part),
    value: part.sum ?? 0,
  });
  let forward = parts.filter((part) => part.kind === "feed_forward");
  return kinds.flatMap((kind) => {
    const heads = parts.filter((part) => {
      const at = part.kind === "head" ? findHead(run, part.name) : null;
      return at !== null && run.attentions[at.attention]?.kind === kind;
    });
    if (heads.length === 0) return [];
    const own = forward;
    forward = [];
    const layers = [...new Set([...heads, ...own].map((part) => part.layer ?? 0))].sort((a, b) => a - b);
    const rows = layers.map((layer): LayerOfParts => {
      const after = own.find((part) => part.layer === layer);
      return {
        layer,
        heads: heads.filter((part) => part.layer === layer).map(squareOf),
        feedForward: after ? squareOf(after) : null,
      };
    });
    const columns = Math.max(...rows.map((row) => row.heads.length));
    return [{ kind, title: bandNames[kind], columns, hasFeedForward: own.length > 0, layers: rows }];
  });
}

/** A figure of each of these heads, in bands of their kinds, layer under layer; without those that the run lacks. */
export function bandsOfHeads(run: Run, heads: HeadFigure[]): PartBand[] {
  const layers = new Map<Attention, LayerOfParts>();
  for (const { head: name, ...more } of heads) {
    const at = findHead(run, name);
    const of = at && run.attentions[at.attention];
    if (!of) continue;
    const layer = layers.get(of) ?? { layer: of.layer, heads: [], feedForward: null };
    layers.set(of, layer);
    layer.heads.push({ name, title: placeInWords(of, at.head), ...more });
  }
  return kinds.flatMap((kind) => {
    const rows = [...layers].flatMap(([of, layer]) => (of.kind === kind ? [layer] : []));
    if (rows.length === 0) return [];
    const columns = Math.max(...rows.map((row) => row.heads.length));
    return [{ kind, title: bandNames[kind], columns, hasFeedForward: false, layers: rows }];
  });
}

/** The largest square, whose colour is full. */
export function fullSquare({ parts }: Contributed): number {
  const sizes = parts
    .filter(({ kind }) => kind === "head" || kind === "feed_forward")
    .map((part) => Math.abs(part.sum ?? 0));
  return Math.max(...sizes, 0) || 1;
}

/** As many decimals as squares of this size need, and no nought before the point. */
export function inSquare(value: number, full: number): string {
  const text = Math.abs(value).toFixed(full >= 10 ? 1 : full >= 0.5 ? 2 : 3);
  if (Number(text) === 0) return "0";
  return `${value < 0 ? "−" : ""}${text.replace(/^0\./, ".")}`;
}

/** The sum of all parts by their kind. */
export function sumsOf({ parts, score }: Contributed): SumLine[] {
  const lines: [ContributedPart["kind"], string][] = [
    ["embeddings", "Embeddings"],
    ["head", "Heads"],
    ["feed_forward", "Feed-forward layers"],
    ["biases", "Biases"],
    ["output", "The output layer's own"],
  ];
  const all = parts.reduce((sum, part) => sum + Math.abs(part.sum ?? 0), 0);
  const sums = lines.flatMap(([kind, title]) => {
    const own = parts.filter((part) => part.kind === kind);
    const value = own.reduce((sum, part) => sum + (part.sum ?? 0), 0);
    // A model without biases has rounding in their place.
    const nothing = (kind === "biases" || kind === "output") && Math.abs(value) < 1e-5 * all;
    return own.length === 0 || nothing ? [] : [{ title, value }];
  });
  return [...sums, { title: "Together", value: score ?? 0 }];
}

const bySize = (a: ContributedPart, b: ContributedPart): number => Math.abs(b.sum ?? 0) - Math.abs(a.sum ?? 0);

export function strongestOf({ parts }: Contributed, count: number): ContributedPart[] {
  return [...parts].sort(bySize).slice(0, count);
}

/** What a head added through each token that it reads, as it stands in the text; null: it is not known. */
export function sourcesOf(of: Text, its: Contributed, head: string): Scored[] | null {
  const sources = its.parts.find((part) => part.name === head)?.sources;
  if (!sources) return null;
  const cross = splitHead(head)?.attention.endsWith("cross_attention") ?? false;
  const labels = (cross && its.source_tokens) || its.tokens;
  const ofSource = of.target === null || (cross && its.source_tokens !== null);
  const read = (ofSource ? of.source : of.target) ?? of.source;
  const write = writerOf(read.text);
  return sources.map((score, i) => {
    const label = labels[i] ?? "";
    const placed = read.tokens[i];
    // A mask stands in the place of the word that is asked for, and the text has that word.
    const { word, apart } =
      placed?.label === label ? write(placed) : { word: shown(label), apart: write(placed ?? nowhere).apart };
    return { word, apart, kept: false, score: score ?? 0 };
  });
}

const nowhere = { token: "", begin: 0, end: 0 };

const measured = ({ measure, answer }: Contributed): string =>
  measure === "cosine" ? `cosine to “${shown(answer.text, 60)}”` : `logit of “${shown(answer.text)}”`;

/** "logit of “cat”, 18.4" */
export function summedInWords(of: Text | undefined): string {
  const its = found<Contributed>(of?.contributions);
  return its && its.score !== null ? `${measured(its)}, ${figure(its.score)}` : "";
}

/** What the chosen head adds, and its rank among heads. */
export function headAddsInWords(run: Run, its: Contributed, head: string): string {
  const heads = its.parts.filter((part) => part.kind === "head").sort(bySize);
  const rank = heads.findIndex((part) => part.name === head);
  const part = heads[rank];
  if (!part) return "This head is in the encoder: what that does comes in through the heads of cross-attention.";
  const value = part.sum ?? 0;
  const does = value < 0 ? "takes" : "adds";
  const way = value < 0 ? "from" : "to";
  return (
    `${titleOfPart(run, part)} ${does} ${figure(Math.abs(value))} ${way} the ${measured(its)}: ` +
    `number ${rank + 1} of ${heads.length} heads by size.`
  );
}

/** What the figures mean, and what they do not. */
export function meaningInWords(its: Contributed): string {
  const less = its.centred ? ", less the mean of all logits" : "";
  return (
    `All parts add up to the ${measured(its)}${less}, with the scales of the norms held at those of this text. ` +
    "A part is what one head or layer writes into it directly; it is not what the model would lose without it, " +
    "since later layers read what earlier ones write."
  );
}
