// What `multihead heads lens --json` prints of one text: the fields that the page shows, and their reader.
import {
  BadPage,
  count,
  type Figure,
  figure,
  listOf,
  oneOf,
  orAbsent,
  orNull,
  record,
  text,
  type Reader,
} from "./reader";
import { type None, orWhy } from "./none";

/** The words, or the labels, that the model's end makes of the stream at each place; of vectors their cosines. */
export type Lensed = LensedWords | LensedVectors;

export interface LensedWords {
  says: "words" | "labels";
  /** How labels are scored; null: words, by their probability. */
  scores: "softmax" | "sigmoid" | "logits" | null;
  positions: LensedPosition[];
  /** Place by place, each with all positions; the last place is the model's end. */
  values: LensedValue[];
}

export interface LensedPosition {
  /** The number of the token that is read; null: labels of the whole text. */
  position: number | null;
  token: string | null;
  /** What the text has where this position predicts; null: it is not known. */
  actual: { token: string } | null;
  /** What the model says in the end. */
  predicted: { token: string };
}

export interface LensedValue {
  /** "decoder.embeddings", "decoder.3.output" */
  site: string;
  /** Best first. */
  best: LensedWord[];
  /** Of the word that the model says in the end. */
  predicted: { rank: number; log_probability: Figure; logit: Figure };
}

export interface LensedWord {
  token: string;
  /** One of the two is there. */
  probability: Figure;
  logit: Figure;
}

export interface LensedVectors {
  says: "vectors";
  /** The text of the other vector; null: there is none. */
  second: string | null;
  /** Cosines with the text's own vector and with the other one. */
  values: { site: string; own: Figure; second: Figure }[];
}

const kind = record({ says: oneOf("words", "labels", "vectors") });
const token = record({ token: text });

const vectors = record<Omit<LensedVectors, "says">>({
  second: orAbsent(text),
  values: listOf(record({ site: text, own: figure, second: orAbsent(figure) })),
});

const words = record<Omit<LensedWords, "says">>({
  scores: orAbsent(oneOf("softmax", "sigmoid", "logits")),
  positions: listOf(
    record<LensedPosition>({
      position: orNull(count),
      token: orNull(text),
      actual: orNull(token),
      predicted: token,
    }),
  ),
  values: listOf(
    record<LensedValue>({
      site: text,
      best: listOf(record<LensedWord>({ token: text, probability: orAbsent(figure), logit: orAbsent(figure) })),
      predicted: record({ rank: count, log_probability: orAbsent(figure), logit: orAbsent(figure) }),
    }),
  ),
});

export const readLens: Reader<Lensed | None> = orWhy<Lensed>((value, where) => {
  const { says } = kind(value, where);
  if (says === "vectors") return { says, ...vectors(value, where) };
  const read = words(value, where);
  const { positions, values } = read;
  if (positions.length === 0 || values.length === 0 || values.length % positions.length !== 0)
    throw new BadPage(`${where} has ${values.length} values for ${positions.length} positions.`);
  return { says, ...read };
});
