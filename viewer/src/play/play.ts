// What a page to play with is made of. A page asks its question, then for a guess, and only then shows what happens;
// its sliders change
// that, and in the end it gives the answer.
import type { Range } from "./address";
import type { Layer, Trace } from "./layer";
import type { Matrix } from "./matrix";
import type { Moment, TrainingOptions } from "./training";

export interface Slider extends Range {
  label: string;
  /** The value in words, behind the label. */
  words: (value: number) => string;
}

export interface Guess {
  ask: string;
  choices: readonly string[];
  /** Which of them is right. */
  right: number;
  /** Why, in a sentence; what the figures below show. */
  why: string;
}

/** Matrices that stand beside each other. */
export interface Row {
  title: string;
  about: string;
  /** Names of steps. */
  steps: readonly string[];
}

/** One course of a chart; of what is trained now, or of what was tried before. */
export interface Line {
  name: string;
  points: readonly (readonly [x: number, y: number])[];
  now: boolean;
}

/**
 * Lines over the steps of a training, on a logarithmic scale from `low` to `high`; what is 0 stands below all others.
 */
export interface Chart {
  title: string;
  about: string;
  lines: readonly Line[];
  low: number;
  high: number;
  /** The step whose heads are shown. */
  at: number;
}

/** What a choice of the sliders gives. */
export interface Shown {
  /** Null: a training has not begun. */
  trace: Trace | null;
  charts?: readonly Chart[];
  rows: readonly Row[];
  /** What happened, in numbers: a sentence each. */
  said: readonly string[];
  /** Labels of the rows; unset: made-up words. */
  words?: readonly string[];
}

export type Values = { readonly [name: string]: number };

/** A training, as far as it has come. */
export interface Trained {
  options: TrainingOptions;
  moments: readonly Moment[];
}

/** What the model in the page makes of the reader's sentence. */
export interface ReadText {
  text: string;
  /** Its tokens, as people read them. */
  words: readonly string[];
  /** What an attention of the model reads, and its weights. */
  x: Matrix;
  layer: Layer;
  /** The translation. */
  says: string;
  /** What log p of the translation loses without each head of that attention. */
  losses: readonly number[];
}

/** What a page with a model in it reads. */
export interface Reads {
  /** The sentence at first. */
  first: string;
  /** Of the attentions of the encoder, which is read. */
  layer: (values: Values) => number;
}

export interface Play {
  /** Of its answer: docs/answers/NAME.md. */
  name: string;
  lead: readonly string[];
  guess: Guess;
  sliders: readonly Slider[];
  /** What is trained, in a worker; a page without it has nothing to train. */
  train?: (values: Values) => TrainingOptions;
  /** A page without it has no model. */
  reads?: Reads;
  /**
   * trained: that of these values, and before it those that were tried. read: what the model made of the sentence,
   * once it has.
   */
  show: (values: Values, trained: readonly Trained[], read?: ReadText | null) => Shown;
}

/** How many words the rows have. */
export const wordsSlider: Slider = {
  name: "words",
  label: "Words",
  choices: [1, 2, 3, 4, 5, 6, 8, 10],
  start: 6,
  words: String,
};

/** The seed of everything random, of so many. */
export const numbersSlider = (seeds: number): Slider => ({
  name: "numbers",
  label: "Other random numbers",
  choices: Array.from({ length: seeds }, (_, i) => i + 1),
  start: 1,
  words: (seed) => `${seed} of ${seeds}`,
});

/** A slider's value; every slider has one. */
export function chosenValue(values: Values, name: string): number {
  const value = values[name];
  if (value === undefined) throw new Error(`there is no slider ${name}`);
  return value;
}

const sentence = ["the", "small", "dog", "sees", "a", "cat", "and", "runs", "away", "from", "it", "."];

/** Labels of so many words. */
export const wordsOf = (count: number): string[] => Array.from({ length: count }, (_, i) => sentence[i] ?? `word ${i}`);
