// Random numbers that a seed gives again.
import { type Matrix, matrix } from "./matrix";

/** Numbers in [0, 1) (mulberry32, of Tommy Ettinger). */
export function uniform(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Numbers of the normal distribution with variance 1 (Box and Muller 1958). */
export function normal(seed: number): () => number {
  const next = uniform(seed);
  return () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
}

/** A matrix of such numbers times `size`, rounded to hundredths, so that what is written is what is computed with. */
export function randomMatrix(rows: number, columns: number, size: number, next: () => number): Matrix {
  return matrix(rows, columns, () => Math.round(100 * size * next()) / 100);
}
