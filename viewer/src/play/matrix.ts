// Matrices of float64 numbers, row after row, and the few things that attention does with them.
export interface Matrix {
  readonly rows: number;
  readonly columns: number;
  readonly values: Float64Array;
}

export function matrix(rows: number, columns: number, at: (row: number, column: number) => number): Matrix {
  const values = new Float64Array(rows * columns);
  for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) values[i * columns + j] = at(i, j);
  return { rows, columns, values };
}

/** A copy of numbers, row after row. */
export const matrixOf = (rows: number, columns: number, values: Iterable<number>): Matrix => ({
  rows,
  columns,
  values: Float64Array.from(values),
});

export const cell = (of: Matrix, row: number, column: number): number => of.values[row * of.columns + column] as number;

export const mapped = (of: Matrix, to: (value: number) => number): Matrix => ({ ...of, values: of.values.map(to) });

export const turned = (of: Matrix): Matrix => matrix(of.columns, of.rows, (i, j) => cell(of, j, i));

/** So many rows, from `begin` on. */
export const rowsOf = (of: Matrix, begin: number, count: number): Matrix =>
  matrixOf(count, of.columns, of.values.subarray(begin * of.columns, (begin + count) * of.columns));

/** A B, [n, k] [k, m]. */
export function product(a: Matrix, b: Matrix): Matrix {
  if (a.columns !== b.rows) throw new Error(`a product of ${a.columns} columns and ${b.rows} rows`);
  const values = new Float64Array(a.rows * b.columns);
  for (let i = 0; i < a.rows; i++) {
    for (let j = 0; j < b.columns; j++) {
      let sum = 0;
      for (let n = 0; n < a.columns; n++) sum += cell(a, i, n) * cell(b, n, j);
      values[i * b.columns + j] = sum;
    }
  }
  return { rows: a.rows, columns: b.columns, values };
}

/** [A | B | ...]: as many rows each. */
export function beside(parts: readonly Matrix[]): Matrix {
  const columns = parts.flatMap((part) => Array.from({ length: part.columns }, (_, column) => ({ part, column })));
  return matrix(parts[0]?.rows ?? 0, columns.length, (i, j) => {
    const { part, column } = columns[j] as (typeof columns)[number];
    return cell(part, i, column);
  });
}

/** Each row as exponentials that add up to 1. */
export function softmax(scores: Matrix): Matrix {
  const values = new Float64Array(scores.values.length);
  for (let i = 0; i < scores.rows; i++) {
    const row = scores.values.subarray(i * scores.columns, (i + 1) * scores.columns);
    const most = row.reduce((a, b) => Math.max(a, b), -Infinity);
    const exponentials = row.map((score) => Math.exp(score - most));
    const sum = exponentials.reduce((a, b) => a + b, 0);
    exponentials.forEach((value, j) => {
      values[i * scores.columns + j] = value / sum;
    });
  }
  return { ...scores, values };
}

/** The length of all numbers as one vector. */
export const length = (of: Matrix): number => Math.sqrt(of.values.reduce((sum, value) => sum + value * value, 0));

/** The largest number, whatever its sign. */
export const largest = (of: Matrix): number => of.values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

/** Half of the mean square of the numbers: the loss of what an output is off by. */
export const halfMeanSquare = (of: Matrix): number => length(of) ** 2 / 2 / of.values.length;

export const less = (a: Matrix, b: Matrix): Matrix =>
  matrix(a.rows, a.columns, (i, j) => cell(a, i, j) - cell(b, i, j));

/** How much of each row of one map would have to move to make it that of the other, 0 to 1; the mean of the rows. */
export function moved(a: Matrix, b: Matrix): number {
  return less(a, b).values.reduce((sum, value) => sum + Math.abs(value), 0) / 2 / a.rows;
}

export const add = (a: Matrix, b: Matrix): Matrix => matrix(a.rows, a.columns, (i, j) => cell(a, i, j) + cell(b, i, j));

/** A row [1, columns] added to each row. */
export const addRow = (a: Matrix, row: Matrix): Matrix =>
  matrix(a.rows, a.columns, (i, j) => cell(a, i, j) + cell(row, 0, j));

/** Of at least one, from the left. */
export const sum = (all: readonly Matrix[]): Matrix => all.reduce(add);
