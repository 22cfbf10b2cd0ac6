// What `multihead heads contributions --json` prints of one text: the fields that the page shows, and their reader.
import { count, type Figure, figure, flag, listOf, oneOf, orAbsent, orNull, record, text, type Reader } from "./reader";
import { type None, orWhy } from "./none";

/** What the model says, as the sum of what its parts add. */
export interface Contributed {
  measure: "logit" | "label" | "cosine";
  /** Less the mean of all logits. */
  centred: boolean;
  /** The word, the label, or the text whose vector is compared. */
  answer: { text: string };
  score: Figure;
  /** Labels of what the last stack reads. */
  tokens: string[];
  /** Of a translator: of what its encoder reads. */
  source_tokens: string[] | null;
  /** In the order of the model. */
  parts: ContributedPart[];
}

export interface ContributedPart {
  /** "decoder.3.self_attention.5", "decoder.3.feed_forward" */
  name: string;
  kind: "embeddings" | "head" | "feed_forward" | "biases" | "output";
  layer: number | null;
  sum: Figure;
  /** Of a head: what came from each token that it reads, of cross-attention the source's. Null: it is not known. */
  sources: Figure[] | null;
}

export const readContributions: Reader<Contributed | None> = orWhy(
  record<Contributed>({
    measure: oneOf("logit", "label", "cosine"),
    centred: flag,
    answer: record({ text }),
    score: figure,
    tokens: listOf(text),
    source_tokens: orAbsent(listOf(text)),
    parts: listOf(
      record<ContributedPart>({
        name: text,
        kind: oneOf("embeddings", "head", "feed_forward", "biases", "output"),
        layer: orNull(count),
        sum: figure,
        sources: orNull(listOf(figure)),
      }),
    ),
  }),
);
