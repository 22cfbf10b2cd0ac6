// Two heads that begin equal, or nearly so, and are trained.
import { figure, thousands } from "../../names";
import { type Layer, traceOf } from "../layer";
import { type Chart, chosenValue, type Play, type Shown, type Trained, type Values, numbersSlider } from "../play";
import { moments, stepsBetween, Training, type Moment, type TrainingOptions } from "../training";

const tenths: readonly number[] = [0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1];

export function optionsOf(values: Values): TrainingOptions {
  return {
    apart: tenths[chosenValue(values, "apart")] ?? 0,
    width: chosenValue(values, "width"),
    seed: chosenValue(values, "numbers"),
  };
}

const began = (apart: number): string =>
  apart === 0 ? "equal" : `${apart === 1 ? "1" : apart.toExponential(0)} apart`;

function charts(all: readonly Trained[], at: number): Chart[] {
  const lines = (of: (moment: Moment) => number) =>
    all.map(({ options, moments: course }, i) => ({
      name: `begun ${began(options.apart)}`,
      points: course.map((moment) => [moment.step, of(moment)] as const),
      now: i === all.length - 1,
    }));
  return [
    {
      title: "How far apart the heads are",
      about:
        "|a − b| / (|a| + |b|) of what the two add to the output: 0 the same, 1 the opposite, " +
        "0.71 two that have nothing in common.",
      lines: lines(({ distance }) => distance),
      low: 1e-14,
      high: 1,
      at,
    },
    {
      title: "Loss",
      about: "How far the output is from what it should be. Grey: what was tried before.",
      lines: lines(({ loss }) => loss),
      low: 1e-4,
      high: 10,
      at,
    },
  ];
}

function said(all: readonly Trained[]): string[] {
  const now = all.at(-1);
  const [first, last] = [now?.moments[0], now?.moments.at(-1)];
  if (!now || !first || !last) return ["The heads are trained …"];
  if (now.moments.length <= moments) return [`The heads are trained: ${thousands(last.step)} steps …`];
  const steps = thousands(last.step);
  const course =
    last.distance === 0
      ? `The heads began equal to the last bit, and after ${steps} steps they are: their distance is 0.`
      : `The heads began ${figure(first.distance)} apart; after ${steps} steps they are ` +
        `${figure(last.distance)} apart.`;
  const equal = all.find(
    ({ options, moments: course }) =>
      options.apart === 0 &&
      options.width === now.options.width &&
      options.seed === now.options.seed &&
      course.length > moments,
  )?.moments;
  const theirs = equal?.at(-1)?.loss;
  const loss = `The loss is ${figure(last.loss)}`;
  if (theirs === undefined || now.options.apart === 0) return [course, `${loss}.`];
  return [course, `${loss}; that of equal heads is ${figure(theirs)}, ${figure(theirs / last.loss)} times as high.`];
}

/** What the heads add, beside each other. */
function show(values: Values, all: readonly Trained[]): Shown {
  const course = all.at(-1)?.moments ?? [];
  const moment = course[Math.min(chosenValue(values, "moment"), course.length - 1)];
  if (!moment) return { trace: null, rows: [], said: said(all) };
  const layer: Layer = moment.layer;
  return {
    trace: traceOf(new Training(optionsOf(values)).x, layer),
    charts: charts(all, moment.step),
    rows: [0, 1]
      .map((head) => ({
        title: `Head ${head} at step ${thousands(moment.step)}`,
        about: head === 0 ? "Queries and keys give its map, values what it gathers." : "The same of the other head.",
        steps: [`w_q_${head}`, `w_k_${head}`, `w_v_${head}`, `weights_${head}`],
      }))
      .concat([
        {
          title: "Both together",
          about: "The upper rows of W^O meet head 0, the lower ones head 1.",
          steps: ["z", "w_o", "output"],
        },
      ]),
    said: said(all),
  };
}

export const diversity: Play = {
  name: "diversity",
  lead: [
    "Two heads read the same 12 words and are trained together to give what two other heads " +
      "give. That takes two heads that differ.",
    "Begin them equal: the same numbers in W^Q, W^K, W^V and in their part of W^O, to the last bit. Then train.",
  ],
  guess: {
    ask: "What becomes of heads that begin equal?",
    choices: [
      "They stay equal for ever",
      "Rounding drives them apart",
      "The loss drives them apart, since two different heads do more",
    ],
    right: 0,
    why:
      "Equal heads get equal gradients, bit for bit: the loss drives apart only what differs already. Now let them " +
      "begin a little apart.",
  },
  sliders: [
    {
      name: "apart",
      label: "Noise on the numbers of head 1",
      choices: tenths.map((_, i) => i),
      start: 0,
      words: (i) => (i === 0 ? "0: equal" : i === tenths.length - 1 ? "1: random" : (tenths[i] ?? 0).toExponential(0)),
    },
    { name: "width", label: "Numbers of a query, key and value", choices: [1, 2, 4, 8], start: 4, words: String },
    numbersSlider(6),
    {
      name: "moment",
      label: "Heads shown at step",
      choices: Array.from({ length: moments + 1 }, (_, i) => i),
      start: moments,
      words: (i) => thousands(i * stepsBetween),
    },
  ],
  train: optionsOf,
  show,
};
