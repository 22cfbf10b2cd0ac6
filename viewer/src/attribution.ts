// Which tokens count for what a model says of a text, and its words.
import type { Attributed, AttributedToken } from "./attributed";
import { figure, shown } from "./names";
import { found } from "./none";
import type { Text } from "./page";
import { type Scored, writerOf } from "./written";

/** Kept are tokens that are never replaced: special ones, and the one that is asked for. */
export interface Part extends Scored {
  side: "source" | "target";
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

/** The tokens with a score of the method, as they stand in the text. */
function partsOf(of: Text, tokens: AttributedToken[], method: string): Part[] {
  const write = { source: writerOf(of.source.text), target: writerOf(of.target?.text ?? "") };
  return tokens.flatMap((token): Part[] => {
    const score = token.scores[method] ?? null;
    return score === null ? [] : [{ side: token.side, ...write[token.side](token), kept: token.kept, score }];
  });
}

export function methodsOf(of: Text): Method[] {
  const tokens = found(of.attribution)?.tokens ?? [];
  return methods
    .map(([name, title, about]) => ({ name, title, about, parts: partsOf(of, tokens, name) }))
    .filter(({ parts }) => parts.length > 0);
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
  const its = found(of.attribution);
  if (!its || its.replaced_score === null) return "";
  const words = its.explained === "log-probability" ? "every word but the explained one" : "every word";
  const now = figure(its.replaced_score);
  return `With ${words} replaced by ${shown(its.replacement)} the ${its.explained} is ${now}.`;
}

/** "log-probability of “cat”, −0.03 nats", "logit of “POSITIVE”, 4.2" */
export function explainedInWords(of: Text | undefined): string {
  const its = found<Attributed>(of?.attribution);
  if (!its || its.score === null) return "";
  if (its.explained === "logit") return `logit of “${shown(its.label)}”, ${figure(its.score)}`;
  return its.explained === "cosine"
    ? `cosine to “${shown(its.second, 60)}”, ${figure(its.score)}`
    : `log-probability of “${shown(its.token)}”, ${figure(its.score)} nats`;
}
