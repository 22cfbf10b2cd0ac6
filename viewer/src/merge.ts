// A map as the toggles want it: sinks left out, pieces of words put together, weights times ‖v W^O‖.
import type { HeadWeights } from "./weights";
import type { Tokens } from "./page";

/** Tokens that are drawn as one: pieces of a word, or one token. */
export interface Group {
  first: number;
  last: number;
}

/** Pieces of the same word that stand side by side, or each token alone. */
export function groupsOf(tokens: Tokens, words: boolean): Group[] {
  const groups: Group[] = [];
  let before = -1;
  tokens.tokens.forEach((token, i) => {
    const last = groups[groups.length - 1];
    if (words && last && token.word >= 0 && token.word === before) last.last = i;
    else groups.push({ first: i, last: i });
    before = token.word;
  });
  return groups;
}

export function groupOf(groups: Group[], token: number): number {
  return groups.findIndex((group) => group.first <= token && token <= group.last);
}

/**
 * Keys that draw weight without being words: special tokens, and the first token where queries see only what is before.
 */
export function sinksOf(keys: Tokens, causal: boolean): boolean[] {
  return keys.tokens.map((token, j) => token.special || (causal && j === 0));
}

export interface Toggles {
  hidden: boolean[] | null;
  lengths: Float32Array | null;
}

export interface Map2 {
  rows: number;
  columns: number;
  values: Float32Array;
}

/**
 * The map of groups: of the keys of a group the sum, of its queries the mean (Clark et al. 2019), so that rows still
 * add up to 1. Hidden keys count 0 and the others are not scaled up.
 */
export function mapOf(weights: HeadWeights, queries: Group[], keys: Group[], toggles: Toggles): Map2 {
  const values = new Float32Array(queries.length * keys.length);
  queries.forEach((query, r) => {
    const share = 1 / (query.last - query.first + 1);
    for (let i = query.first; i <= query.last; i++) {
      keys.forEach((key, c) => {
        let sum = 0;
        for (let j = key.first; j <= key.last; j++) {
          if (toggles.hidden?.[j]) continue;
          sum += (weights.a[i * weights.keys + j] as number) * (toggles.lengths ? (toggles.lengths[j] as number) : 1);
        }
        const at = r * keys.length + c;
        values[at] = (values[at] as number) + share * sum;
      });
    }
  });
  return { rows: queries.length, columns: keys.length, values };
}

/** A − B, where both have the same shape. */
export function difference(a: Map2, b: Map2): Map2 | null {
  if (a.rows !== b.rows || a.columns !== b.columns) return null;
  return { ...a, values: a.values.map((value, i) => value - (b.values[i] as number)) };
}

/** How far two maps are apart: the mean over rows of half the sum of differences, 0 to 1. */
export function change(a: Float32Array, b: Float32Array, rows: number): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += Math.abs((a[i] as number) - (b[i] as number));
  return rows === 0 ? 0 : sum / 2 / rows;
}
