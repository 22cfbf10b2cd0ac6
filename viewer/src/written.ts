// Tokens as they stand in a text.
import { shown } from "./names";

/** A token with a score. */
export interface Scored {
  /** As it stands in the text, or of special tokens as in the vocabulary. */
  word: string;
  /** Whether the text has something between it and the token before. */
  apart: boolean;
  /** It has no colour: it is none of those that are compared. */
  kept: boolean;
  score: number;
}

interface Placed {
  token: string;
  begin: number;
  end: number;
}

/** Says of the tokens of a text, one after the other, how each is written. */
export function writerOf(text: string): (placed: Placed) => { word: string; apart: boolean } {
  const characters = [...text];
  let last = 0;
  return ({ token, begin, end }) => {
    const letters = characters.slice(begin, end).join("").trim();
    const apart = end === 0 || begin > last || characters[begin] === " ";
    last = Math.max(last, end);
    return { word: shown(letters === "" ? token : letters), apart };
  };
}

/** The largest score of tokens that are compared, whose colour is full. */
export function fullScore(parts: Scored[]): number {
  return parts.reduce((most, part) => (part.kept ? most : Math.max(most, Math.abs(part.score))), 0) || 1;
}
