// Which tokens count for what a model says of a text, read field by field from what `multihead heads attribution --json` prints.
import { entries, number, object, text } from "./evidence";
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
export const whyNone = (of: Text): string | null => text(object(of.attribution)?.why);

export function methodsOf(of: Text): Method[] {
  const tokens = entries(of.attribution, "tokens");
  const texts = { source: [...of.source.text], target: [...(of.target?.text ?? "")] };
  return methods.flatMap(([name, title, about]) => {
    const ends = { source: 0, target: 0 };
    const parts = tokens.flatMap((token): Part[] => {
      const score = number(object(token.scores)?.[name]);
      if (score === null) return [];
      const side = token.side === "target" ? "target" : "source";
      const begin = number(token.begin) ?? 0;
      const end = number(token.end) ?? 0;
      const letters = texts[side].slice(begin, end).join("").trim();
      const apart = end === 0 || begin > ends[side] || texts[side][begin] === " ";
      ends[side] = Math.max(ends[side], end);
      return [
        {
          side,
          word: shown(letters === "" ? (text(token.token) ?? "") : letters),
          apart,
          kept: token.kept === true,
          score,
        },
      ];
    });
    return parts.length === 0 ? [] : [{ name, title, about, parts }];
  });
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
  const fields = object(of.attribution);
  const score = number(fields?.replaced_score);
  const by = text(fields?.replacement);
  if (!fields || score === null || by === null) return "";
  const [words, what] =
    text(fields.second) !== null ? ["every word", "cosine"] : ["every word but the explained one", "log-probability"];
  return `With ${words} replaced by ${shown(by)} the ${what} is ${figure(score)}.`;
}

/** "log-probability of “cat”, −0.03 nats" */
export function explainedInWords(of: Text | undefined): string {
  const fields = object(of?.attribution);
  const score = number(fields?.score);
  if (!fields || score === null) return "";
  const second = text(fields.second);
  return second !== null
    ? `cosine to “${shown(second, 60)}”, ${figure(score)}`
    : `log-probability of “${shown(text(fields.token) ?? "")}”, ${figure(score)} nats`;
}
