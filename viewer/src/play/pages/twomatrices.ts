// Two matrices or one: a head that was trained with two, the one matrix that their product is, and that matrix cut to a
// lower rank; and what either costs in a model.
import { figure, percent, thousands } from "../../names";
import { addOneMatrix, traceOf, type Trace } from "../layer";
import { halfMeanSquare, largest, length, less, type Matrix, moved } from "../matrix";
import { type Chart, chosenValue, type Play, type Shown, type Trained, type Values, numbersSlider } from "../play";
import { moments, Training, type TrainingOptions } from "../training";

/** Width of the rows that the heads below read. */
const d = 8;

export const optionsOf = (values: Values): TrainingOptions => ({
  apart: 1,
  width: chosenValue(values, "width"),
  seed: chosenValue(values, "numbers"),
});

/** What the scores of one head take: numbers to learn, and multiplications for so many words. */
export interface Cost {
  numbers: number;
  multiplications: number;
}

export const costOfTwo = (d: number, width: number, words: number): Cost => ({
  numbers: 2 * d * width,
  multiplications: 2 * words * d * width + words * words * width,
});
export const costOfOne = (d: number, words: number): Cost => ({
  numbers: d * d,
  multiplications: words * d * d + words * words * d,
});

/** "4 times as many", "half as many" */
function times(many: number, few: number): string {
  const ratio = many / few;
  return ratio === 1 ? "as many" : ratio === 0.5 ? "half as many" : `${Number(ratio.toPrecision(3))} times as many`;
}

const lossOf = (output: Matrix, wanted: Matrix): number => halfMeanSquare(less(output, wanted));

function saidOf(trace: Trace, values: Values, wanted: Matrix): string[] {
  const [rank, width] = [chosenValue(values, "rank"), chosenValue(values, "width")];
  const apart = largest(less(trace.get("scores_one"), trace.get("scores_0")));
  const whole = trace.get("w_one");
  const lost = length(less(whole, trace.get("w_cut"))) / length(whole);
  const before = figure(lossOf(trace.get("output"), wanted));
  const cut =
    rank >= width
      ? `W has rank ${width}, as many as a query has numbers: at rank ${rank} nothing is lost, ` +
        `and the loss stays ${before}.`
      : `Cut to rank ${rank}, W has lost ${percent(lost * lost)} of the sum of its squares: ` +
        `${percent(moved(trace.get("weights_cut"), trace.get("weights_0")))} of each row's attention has moved, and ` +
        `the loss goes from ${before} to ${figure(lossOf(trace.get("output_cut"), wanted))}.`;
  const [model, heads] = [chosenValue(values, "model"), chosenValue(values, "heads")];
  const [two, one] = [costOfTwo(model, model / heads, 10), costOfOne(model, 10)];
  return [
    cut,
    `One matrix gives the same scores: the largest difference is ${figure(apart)}. It has ${whole.values.length} ` +
      `numbers here, the two together ${2 * d * width}.`,
    `In a model of ${thousands(model)} numbers a word and ${heads} head${heads === 1 ? "" : "s"}, two matrices have ` +
      `${thousands(two.numbers)} numbers a head. One has ${thousands(one.numbers)}, ` +
      `${times(one.numbers, two.numbers)}, and multiplies ${thousands(one.multiplications)} times for ten words; ` +
      `two, ${thousands(two.multiplications)} times.`,
  ];
}

function lossChart(course: Trained): Chart {
  return {
    title: "Loss",
    about: "How far the output of both heads is from what it should be, while they are trained with two matrices each.",
    lines: [{ name: "two matrices", points: course.moments.map(({ step, loss }) => [step, loss] as const), now: true }],
    low: 1e-4,
    high: 10,
    at: course.moments.at(-1)?.step ?? 0,
  };
}

function show(values: Values, all: readonly Trained[]): Shown {
  const course = all.at(-1);
  const moment = course?.moments.at(-1);
  if (!course || !moment) return { trace: null, rows: [], said: ["The heads are trained …"] };
  const training = new Training(course.options);
  const trace = traceOf(training.x, moment.layer);
  const rank = chosenValue(values, "rank");
  addOneMatrix(trace, rank);
  return {
    trace,
    charts: [lossChart(course)],
    rows: [
      {
        title: "Two matrices",
        about:
          `Queries are x W^Q, keys are x W^K, of ${course.options.width} numbers each; ` +
          "a score is a query times a key.",
        steps: ["w_q_0", "w_k_0", "scores_0"],
      },
      {
        title: "One matrix: W = W^Q W^K^T",
        about:
          "x W x^T is the same score. W has a row and a column for each number of a word. The softmax of each row of " +
          "scores, divided by √d_k, is the head's map.",
        steps: ["w_one", "scores_one", "weights_0"],
      },
      {
        title: `W cut to rank ${rank}`,
        about:
          rank === 0
            ? "Nothing is left of it: all scores are 0, and every word reads all words alike."
            : `The nearest matrix that is a sum of ${rank} product${rank === 1 ? "" : "s"} of a column and a row, ` +
              "and the map that it gives.",
        steps: ["w_cut", "scores_cut", "weights_cut"],
      },
      {
        title: "What comes out",
        about:
          "What both heads gather, head 0 with W cut, side by side; W^O mixes it. Last, the output with nothing cut.",
        steps: ["z_cut", "w_o", "output_cut", "output"],
      },
    ],
    said: course.moments.length > moments ? saidOf(trace, values, training.wanted) : ["The heads are trained …"],
  };
}

export const twoMatrices: Play = {
  name: "two-matrices-or-one",
  lead: [
    "A head scores a word for another by a query times a key. The query is x W^Q, the key is x W^K; so the score is " +
      `x W^Q W^K^T x^T, and one matrix W = W^Q W^K^T, of ${d} by ${d} numbers here, gives the same.`,
    "Below, two heads are trained with two matrices each. Then one matrix takes the place of head 0's two, and you " +
      "cut its rank.",
  ],
  guess: {
    ask: "What do two matrices give that the one does not?",
    choices: ["Scores that one matrix cannot give", "Fewer numbers to learn", "Nothing: it is a habit"],
    right: 1,
    why:
      "One matrix gives every score that two give, with d² numbers in place of 2 d d_k. What the two give up is " +
      "rank: their product has rank d_k at most.",
  },
  sliders: [
    {
      name: "rank",
      label: "Rank kept of W",
      choices: [0, 1, 2, 3, 4, 5, 6, 7, 8],
      start: 1,
      words: (rank) => `${rank} of ${d}`,
    },
    { name: "width", label: "Numbers of a query and a key below, d_k", choices: [1, 2, 4, 8], start: 2, words: String },
    {
      name: "model",
      label: "Cost of a model whose words have",
      choices: [64, 128, 256, 512, 768, 1024, 2048, 4096],
      start: 512,
      words: (numbers) => `d = ${thousands(numbers)} numbers`,
    },
    {
      name: "heads",
      label: "and whose layers have",
      choices: [1, 2, 4, 8, 16, 32],
      start: 8,
      words: (heads) => `${heads} head${heads === 1 ? "" : "s"}${heads === 1 ? "" : `, of d / ${heads} numbers each`}`,
    },
    numbersSlider(6),
  ],
  train: optionsOf,
  show,
};
