// What a head can read: of each row all numbers, or a part of them; and what remains of either when all rows are
// turned.
import { percent } from "../../names";
import { type HeadWeights, type Layer, traceOf, type Trace } from "../layer";
import { cell, length, less, matrix, type Matrix, moved, product, turned } from "../matrix";
import { chosenValue, type Play, type Shown, type Values, numbersSlider, wordsSlider } from "../play";
import { normal, randomMatrix } from "../random";

/** Width of rows, and of a head's queries, keys and values. */
const d = 8;
const width = 2;

/** The identity, but numbers i and j of a row turned by an angle. */
const turn = (i: number, j: number, angle: number): Matrix =>
  matrix(d, d, (row, column) => {
    if (row === column) return row === i || row === j ? Math.cos(angle) : 1;
    if (row === i && column === j) return Math.sin(angle);
    if (row === j && column === i) return -Math.sin(angle);
    return 0;
  });

/** A rotation of rows in which, at 45°, every number is spread over all eight alike. */
export function rotation(degrees: number): Matrix {
  const angle = (degrees * Math.PI) / 180;
  let all = matrix(d, d, (i, j) => (i === j ? 1 : 0));
  for (const distance of [1, 2, 4])
    for (let i = 0; i < d; i++) if ((i & distance) === 0) all = product(all, turn(i, i + distance, angle));
  return all;
}

/** The matrix with rows outside of the first `rows` set to 0: a head that gets these numbers alone. */
const cut = (of: Matrix, rows: number): Matrix =>
  matrix(of.rows, of.columns, (i, j) => (i < rows ? cell(of, i, j) : 0));

const each = (head: HeadWeights, to: (of: Matrix) => Matrix): HeadWeights => ({
  q: to(head.q),
  k: to(head.k),
  v: to(head.v),
});

/** Head 0 reads all numbers of a row, head 1 the first `part`. Before the turn both compute the same. */
export function layerOf(part: number, degrees: number, next: () => number): Layer {
  const one = (size: number) => cut(randomMatrix(d, width, size, next), part);
  const learned: HeadWeights = { q: one(1.2), k: one(1.2), v: one(0.8) };
  const back = turned(rotation(degrees));
  const follows = each(learned, (of) => product(back, of));
  const output = randomMatrix(width, d, 0.6, next);
  return {
    heads: [follows, each(follows, (of) => cut(of, part))],
    // Both have the same W_i^O, so that what comes out can be compared.
    output: matrix(2 * width, d, (i, j) => cell(output, i % width, j)),
  };
}

/** What the head with a part still has of the matrices that it would need: a share of their squares. */
export function kept(layer: Layer): number {
  const [all, part] = layer.heads;
  if (!all || !part) throw new Error("two heads");
  const size = (head: HeadWeights) => length(head.q) ** 2 + length(head.k) ** 2 + length(head.v) ** 2;
  return size(part) / size(all);
}

export function traceAt(values: Values): { trace: Trace; layer: Layer } {
  const next = normal(chosenValue(values, "numbers"));
  const [part, degrees] = [d / chosenValue(values, "heads"), chosenValue(values, "turned")];
  const meaning = randomMatrix(chosenValue(values, "words"), d, 1, next);
  const layer = layerOf(part, degrees, next);
  return { trace: traceOf(product(meaning, rotation(degrees)), layer), layer };
}

function show(values: Values): Shown {
  const { trace, layer } = traceAt(values);
  const before = traceAt({ ...values, turned: 0 }).trace;
  const [heads, degrees] = [chosenValue(values, "heads"), chosenValue(values, "turned")];
  const part = d / heads;
  // Turning back leaves rounding, which is no move.
  const difference = (head: number) => {
    const share = moved(trace.get(`weights_${head}`), before.get(`weights_${head}`));
    return share < 1e-12 ? 0 : share;
  };
  const far = length(less(trace.get("z_1"), before.get("z_1"))) / length(before.get("z_1"));
  return {
    trace,
    rows: [
      {
        title: "What comes in",
        about:
          `A row of ${d} numbers for each word${degrees === 0 ? "" : `, turned by ${degrees}°`}: ` +
          "turning moves no two words apart or together.",
        steps: ["x"],
      },
      {
        title: "Head 0 reads all numbers of a row",
        about: "Its matrices have a row for each number. When rows turn, it takes matrices that turn them back.",
        steps: ["w_q_0", "w_k_0", "w_v_0", "weights_0"],
      },
      {
        title:
          heads === 1
            ? "Head 1 gets all of them, too"
            : `Head 1 gets the first ${part === 1 ? "number" : `${part} numbers`} of a row`,
        about: `Of the same matrices it can have ${part} rows; the others meet nothing and are 0.`,
        steps: ["w_q_1", "w_k_1", "w_v_1", "weights_1"],
      },
      {
        title: "What comes out",
        about: `What both have gathered, side by side; W^O brings ${2 * width} numbers back to ${d}.`,
        steps: ["z", "w_o", "output"],
      },
    ],
    said: [
      `Head 0 gives what it gave before the turn: ${percent(difference(0))} of each row's attention has moved.`,
      heads === 1
        ? "So does head 1: the whole row is its part."
        : `Head 1 keeps ${percent(kept(layer))} of the sum of its matrices' squares: ` +
          `${percent(difference(1))} of each ` +
          `row's attention has moved, and what it gathers is off by ${percent(far)}.`,
      ...(degrees === 0 && heads > 1
        ? [
            "Here all that either head needs stands in the part that head 1 gets. Nothing makes " +
              "training put it there: turn the rows.",
          ]
        : []),
    ],
  };
}

export const splitOrProject: Play = {
  name: "split-or-project",
  lead: [
    "Each word is a row of 8 numbers. Two heads have learned the same thing. Head 0 reads all " +
      "8 numbers; head 1 was given a part of them, which happens to have all that it needs.",
    "Now turn all rows by one rotation, which mixes their numbers. Lengths and angles stay, so nothing is lost: " +
      "which number of a row stands where is arbitrary. Head 0 takes matrices that turn the rows back; head 1 " +
      "of these what it can.",
  ],
  guess: {
    ask: "Which head can still do what it did?",
    choices: [
      "Both: nothing was lost",
      "Only the head that reads all numbers",
      "Neither: both have learned the old numbers",
    ],
    right: 1,
    why: "A matrix can turn the rows back, but only from all of their numbers.",
  },
  sliders: [
    {
      name: "turned",
      label: "Rows turned by",
      choices: [0, 5, 10, 15, 20, 25, 30, 35, 40, 45],
      start: 20,
      words: (degrees) => `${degrees}°`,
    },
    {
      name: "heads",
      label: "Parts that a row is cut into",
      choices: [1, 2, 4, 8],
      start: 4,
      words: (parts) => `${parts}, of ${d / parts} number${parts === d ? "" : "s"}`,
    },
    wordsSlider,
    numbersSlider(10),
  ],
  show,
};
