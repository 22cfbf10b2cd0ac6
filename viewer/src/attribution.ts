// Which tokens count for what a model says of a text, and its words.
import type { Attributed, AttributedToken } from "./attributed";
import { figure, shown } from "./names";
import type { Text } from "./page";

export interface Part {
  side: "source" | "target";
  /** As it stands in the text, or of special tokens as in the vocabulary. */
  word: string;
  /** Whether the text has something between it and the token before. */
  apart: boolean;
  /** Never replaced: a special token, or the one that is asked for. */
  kept: boolean;
  score: number;
}

export interface Method {
  name: string;
  title: string;
  about: string;
  parts: Part[];
}

/** The methods in the tool's order, each in a sentence (docs/heads/attribution.md). */
const methods: [name: string, title: string, about: string][] = [
  ["attention", "Attention", "The last layer's weights, the mean over its heads."],
  [
    "norm-weighted",
    "Attention × lengths",
    "The last layer's weights times the length of what they move (Kobayashi et al. 2020).",
  ],
  ["rollout", "Rollout", "Weights of all layers multiplied, each half of it the residual (Abnar and Zuidema 2020)."],
  [
    "relevance",
    "Relevance",
    "Weights of all layers times their gradients, where both raise the score (Chefer et al. 2021).",
  ],
  ["flow", "Flow", "The largest flow through all layers, whose weights are capacities (Abnar and Zuidema 2020)."],
  ["gradient-x-input", "Gradient × input", "How the score changes along each token's vector."],
  [
    "integrated-gradients",
    "Integrated gradients",
    "The same on the way from a text of replaced tokens to this one (Sundararajan et al. 2017).",
  ],
  [
    "value-zeroing",
    "Value zeroing",
    "How much rows change where a token has no value, through all layers (Mohebbi et al. 2023).",
  ],
];

/** Why a text has no attribution; null: it has one, or it was left out. */
export const whyNone = ({ attribution }: Text): string | null =>
  attribution && "why" in attribution ? attribution.why : null;

const attributedOf = ({ attribution }: Text): Attributed | null =>
  attribution && "tokens" in attribution ? attribution : null;

/** The tokens with a score of the method, as they stand in the text. */
function partsOf(of: Text, tokens: AttributedToken[], method: string): Part[] {
  const texts = { source: [...of.source.text], target: [...(of.target?.text ?? "")] };
  const ends = { source: 0, target: 0 };
  return tokens.flatMap(({ side, token, begin, end, kept, scores }): Part[] => {
    const score = scores[method] ?? null;
    if (score === null) return [];
    const letters = texts[side].slice(begin, end).join("").trim();
    const apart = end === 0 || begin > ends[side] || texts[side][begin] === " ";
    ends[side] = Math.max(ends[side], end);
    return [{ side, word: shown(letters === "" ? token : letters), apart, kept, score }];
  });
}

export function methodsOf(of: Text): Method[] {
  const tokens = attributedOf(of)?.tokens ?? [];
  return methods
    .map(([name, title, about]) => ({ name, title, about, parts: partsOf(of, tokens, name) }))
    .filter(({ parts }) => parts.length > 0);
}

/** The largest score of a method's tokens, whose colour is full; kept tokens do not count. */
export function fullScore({ parts }: Method): number {
  return parts.reduce((most, part) => (part.kept ? most : Math.max(most, Math.abs(part.score))), 0) || 1;
}

/** The three tokens that count most: "sees 0.31, cat 0.22, small 0.11". */
export function mostInWords({ parts }: Method): string {
  return parts
    .filter((part) => !part.kept)
    .sort((a, b) => Math.abs(b.score) - Math.abs(a.score))
    .slice(0, 3)
    .map((part) => `${part.word} ${figure(part.score)}`)
    .join(", ");
}

/** What is left of what is explained when the words are replaced. */
export function replacedInWords(of: Text): string {
  const found = attributedOf(of);
  if (!found || found.replaced_score === null) return "";
  const words = found.explained === "log-probability" ? "every word but the explained one" : "every word";
  const now = figure(found.replaced_score);
  return `With ${words} replaced by ${shown(found.replacement)} the ${found.explained} is ${now}.`;
}

/** "log-probability of “cat”, −0.03 nats", "logit of “POSITIVE”, 4.2" */
export function explainedInWords(of: Text | undefined): string {
  const found = of ? attributedOf(of) : null;
  if (!found || found.score === null) return "";
  if (found.explained === "logit") return `logit of “${shown(found.label)}”, ${figure(found.score)}`;
  return found.explained === "cosine"
    ? `cosine to “${shown(found.second, 60)}”, ${figure(found.score)}`
    : `log-probability of “${shown(found.token)}”, ${figure(found.score)} nats`;
}
