// What `multihead heads attribution --json` prints of one text: the fields that the page shows, and their reader.
import { count, type Figure, figure, flag, listOf, oneOf, type Reader, record, tableOf, text } from "./reader";
import { type None, orWhy } from "./none";
import type { PlacedToken } from "./reports";

/** The log-probability of `token`, the logit of `label`, or the cosine to the text `second`. */
export type Attributed = AttributedScore &
  (
    | { explained: "log-probability"; token: string }
    | { explained: "logit"; label: string }
    | { explained: "cosine"; second: string }
  );

export interface AttributedScore {
  score: Figure;
  /** The token that stands for a word that is replaced, and the score when all words are. */
  replacement: string;
  replaced_score: Figure;
  tokens: AttributedToken[];
}

export interface AttributedToken extends PlacedToken {
  side: "source" | "target";
  /** Never replaced: a special token, or the one that is asked for. */
  kept: boolean;
  /** By name of the method. */
  scores: { [method: string]: Figure };
}

const attributedScore = record<AttributedScore>({
  score: figure,
  replacement: text,
  replaced_score: figure,
  tokens: listOf(
    record<AttributedToken>({
      side: oneOf("source", "target"),
      token: text,
      begin: count,
      end: count,
      kept: flag,
      scores: tableOf(figure),
    }),
  ),
});
const explainedKind = record({ explained: oneOf("log-probability", "logit", "cosine") });
const explainedToken = record({ token: text });
const explainedLabel = record({ label: text });
const explainedSecond = record({ second: text });

export const readAttribution: Reader<Attributed | None> = orWhy<Attributed>((value, at) => {
  const { explained } = explainedKind(value, at);
  const common = attributedScore(value, at);
  if (explained === "cosine") return { explained, ...explainedSecond(value, at), ...common };
  if (explained === "logit") return { explained, ...explainedLabel(value, at), ...common };
  return { explained, ...explainedToken(value, at), ...common };
});
