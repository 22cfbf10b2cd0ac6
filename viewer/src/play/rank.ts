// The matrix of a lower rank that is nearest to a matrix: its singular values are found by rotating its columns until
// they are orthogonal (one-sided Jacobi; Hestenes 1958).
import { cell, matrix, type Matrix, mapped } from "./matrix";

/** A = left right^T, columns in the order of their singular values: left has those times U, right is V. */
export interface Factors {
  left: Matrix;
  right: Matrix;
  values: number[];
}

/** Rotates columns i and j. */
function rotate(of: Matrix, i: number, j: number, cos: number, sin: number): void {
  for (let row = 0; row < of.rows; row++) {
    const [a, b] = [cell(of, row, i), cell(of, row, j)];
    of.values[row * of.columns + i] = cos * a - sin * b;
    of.values[row * of.columns + j] = sin * a + cos * b;
  }
}

const dot = (of: Matrix, i: number, j: number): number => {
  let sum = 0;
  for (let row = 0; row < of.rows; row++) sum += cell(of, row, i) * cell(of, row, j);
  return sum;
};

export function factorsOf(of: Matrix): Factors {
  const left = mapped(of, (value) => value);
  const right = matrix(of.columns, of.columns, (i, j) => (i === j ? 1 : 0));
  for (let sweep = 0, turnedOne = true; turnedOne && sweep < 60; sweep++) {
    turnedOne = false;
    for (let i = 0; i < of.columns; i++) {
      for (let j = i + 1; j < of.columns; j++) {
        const [a, b, both] = [dot(left, i, i), dot(left, j, j), dot(left, i, j)];
        if (both === 0 || Math.abs(both) <= 1e-15 * Math.sqrt(a * b)) continue;
        turnedOne = true;
        const zeta = (b - a) / (2 * both);
        const tan = (zeta < 0 ? -1 : 1) / (Math.abs(zeta) + Math.hypot(1, zeta));
        const cos = 1 / Math.hypot(1, tan);
        for (const one of [left, right]) rotate(one, i, j, cos, cos * tan);
      }
    }
  }
  const sizes = Array.from({ length: of.columns }, (_, i) => ({ i, value: Math.sqrt(dot(left, i, i)) }));
  sizes.sort((a, b) => b.value - a.value);
  const ordered = (one: Matrix) =>
    matrix(one.rows, one.columns, (row, column) => cell(one, row, sizes[column]?.i ?? 0));
  return { left: ordered(left), right: ordered(right), values: sizes.map(({ value }) => value) };
}

/** The first `rank` columns of both factors; of rank 0 one column of zeros. */
export function cutToRank(of: Matrix, rank: number): { left: Matrix; right: Matrix } {
  const { left, right } = factorsOf(of);
  const first = (one: Matrix) => matrix(one.rows, Math.max(1, rank), (i, j) => (rank === 0 ? 0 : cell(one, i, j)));
  return { left: first(left), right: first(right) };
}
