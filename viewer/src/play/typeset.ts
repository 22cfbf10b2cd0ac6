// "W^Q", "W_i^O", "W^K^T" and "d_k" as they are set in print.
import { type Child, h } from "../dom";

/** Text, or a piece that stands below the line or above it. */
export type Piece = string | { below: string } | { above: string };

const marked = /([A-Za-z\d])(?:_([a-z]))?((?:\^[A-Z])+)(?![A-Za-z])|\b(d)_([kv])\b/g;

export function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const found of text.matchAll(marked)) {
    const [all, symbol = "", below, above = "", size = "", sizeOf] = found;
    pieces.push(text.slice(end, found.index) + symbol + size);
    if (below ?? sizeOf) pieces.push({ below: below ?? sizeOf ?? "" });
    // Of W^K^T, K names the matrix, and T says that it is transposed.
    if (above) pieces.push({ above: above.slice(1).replace("^T", "⊤") });
    end = found.index + all.length;
  }
  return [...pieces, text.slice(end)].filter((piece) => piece !== "");
}

/** The children of an element that says this. */
export const typeset = (text: string): Child[] =>
  piecesOf(text).map((piece) => {
    if (typeof piece === "string") return piece;
    return "below" in piece ? h("sub", {}, piece.below) : h("sup", {}, piece.above);
  });
