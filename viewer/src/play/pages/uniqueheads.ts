// What makes heads unique: the heads of a trained translator on the reader's sentence, beside heads of random numbers
// of any size, and what is left of their differences when they take one head's numbers.
import { percent, thousands } from "../../names";
import { type HeadWeights, type Layer, type Trace, traceOf } from "../layer";
import { add, cell, length, mapped, type Matrix, moved, product, rowsOf } from "../matrix";
import { chosenValue, numbersSlider, type Play, type ReadText, type Shown, type Slider, type Values } from "../play";
import { normal, randomMatrix } from "../random";

/** How many heads a layer of the page's model has. */
const heads = 4;
/** "As trained" among sizes of random heads. */
const trained = 0;

const mixed = (own: Matrix, first: Matrix, share: number): Matrix =>
  add(
    mapped(own, (value) => (1 - share) * value),
    mapped(first, (value) => share * value),
  );

/** Each head with so large a share of head 0's numbers, and the rest of its own; W^O stays. */
export function alike(layer: Layer, share: number): Layer {
  const [first] = layer.heads;
  if (!first) return layer;
  type Three = Pick<HeadWeights, "q" | "k" | "v">;
  const three = (own: Three, of: Three): Three => ({
    q: mixed(own.q, of.q, share),
    k: mixed(own.k, of.k, share),
    v: mixed(own.v, of.v, share),
  });
  const mix = (own: HeadWeights): HeadWeights => ({
    ...three(own, first),
    ...(own.biases && first.biases ? { biases: three(own.biases, first.biases) } : {}),
  });
  return { ...layer, heads: layer.heads.map(mix) };
}

/** Heads of random numbers, `size` of each query, key and value, that read rows of d numbers. */
export function randomLayer(d: number, size: number, seed: number): Layer {
  const next = normal(seed);
  const one = () => randomMatrix(d, size, 1 / Math.sqrt(d), next);
  return {
    heads: Array.from({ length: heads }, () => ({ q: one(), k: one(), v: one() })),
    output: randomMatrix(heads * size, d, 1 / Math.sqrt(heads * size), next),
  };
}

const maps = (trace: Trace): Matrix[] => Array.from({ length: heads }, (_, i) => trace.get(`weights_${i}`));

/** How much of a row of one head's map would have to move to make it another's: the mean of all pairs. */
export function apart(trace: Trace): number {
  const all = maps(trace);
  const pairs = all.flatMap((a, i) => all.slice(i + 1).map((b) => moved(a, b)));
  return pairs.reduce((sum, one) => sum + one, 0) / pairs.length;
}

const places: { where: string; of: (query: number, words: number) => number }[] = [
  { where: "the word before", of: (query) => query - 1 },
  { where: "the word itself", of: (query) => query },
  { where: "the word after", of: (query) => query + 1 },
  { where: "the first word", of: () => 0 },
  { where: "the end of the sentence", of: (_, words) => words - 1 },
];

/** The place that a map gives most of its weight to, in the mean of the rows that have such a place. */
export function mostRead(map: Matrix): { where: string; share: number } {
  const found = places.map(({ where, of }) => {
    const at = Array.from({ length: map.rows }, (_, query) => ({ query, key: of(query, map.columns) }));
    const shares = at.filter(({ key }) => key >= 0 && key < map.columns).map(({ query, key }) => cell(map, query, key));
    return { where, share: shares.reduce((sum, share) => sum + share, 0) / Math.max(1, shares.length) };
  });
  return found.reduce((most, one) => (one.share > most.share ? one : most));
}

/** Of what the heads add to the output, z_i W_i^O, how long each one's part is: shares of the sum of their lengths. */
export function partsOfOutput(trace: Trace): number[] {
  const output = trace.get("w_o");
  const size = output.rows / heads;
  const lengths = Array.from({ length: heads }, (_, i) =>
    length(product(trace.get(`z_${i}`), rowsOf(output, i * size, size))),
  );
  const all = lengths.reduce((sum, one) => sum + one, 0);
  return lengths.map((one) => (all === 0 ? 0 : one / all));
}

/** What log p loses, as "18 times less probable". */
export function lessProbable(loss: number): string {
  const times = Math.exp(Math.abs(loss));
  if (times < 1.01) return "as probable as with it, to 1 %";
  const many = times < 100 ? Number(times.toPrecision(3)) : thousands(Number(times.toPrecision(2)));
  return `${times < 1e9 ? many : "over a billion"} times ${loss > 0 ? "less" : "more"} probable`;
}

function saidOf(trace: Trace, values: Values, { says, losses, words, x }: ReadText): string[] {
  const [share, size] = [chosenValue(values, "alike"), chosenValue(values, "size")];
  const whole = size === trained && share === 0;
  const made = size === trained ? "" : " Their matrices are random, as before any training.";
  const same =
    `All ${heads} heads read the same ${words.length} rows of ${x.columns} numbers.${made}` +
    (whole ? ` The model's translation: “${says}”.` : "");
  const moves = percent(apart(trace));
  const differ =
    share === 1
      ? `With head 0's numbers all ${heads} heads have one and the same map: ${moves} of a row differs. ` +
        "One head, with the sum of their parts of W^O, would do as well."
      : `From one head's map to another's, ${moves} of each row's attention moves: the mean of all pairs.`;
  const parts = partsOfOutput(trace);
  const each = maps(trace).map((map, i) => {
    const { where, share: most } = mostRead(map);
    const without = whole ? ` Without it, that translation is ${lessProbable(losses[i] ?? 0)}.` : "";
    return (
      `Head ${i} gives most, ${percent(most)} of a row, to ${where}, and has ${percent(parts[i] ?? 0)} of what the ` +
      `heads add to the output.${without}`
    );
  });
  return [same, differ, ...each, `If all words were read alike, each would get ${percent(1 / words.length)}.`];
}

function show(values: Values, _: unknown, read?: ReadText | null): Shown {
  if (!read) return { trace: null, rows: [], said: ["The model reads …"] };
  const size = chosenValue(values, "size");
  const layer = size === trained ? read.layer : randomLayer(read.x.columns, size, chosenValue(values, "numbers"));
  const trace = traceOf(read.x, alike(layer, chosenValue(values, "alike")));
  const names = (part: string) => Array.from({ length: heads }, (_, i) => `${part}_${i}`);
  const own = layer.heads[0]?.q.columns ?? 0;
  return {
    trace,
    words: read.words,
    rows: [
      {
        title: `${heads} heads: ${heads} maps`,
        about:
          "A row for each word of your sentence, whatever it is cut into, and one for its end. All of them are made " +
          "of the same x.",
        steps: names("weights"),
      },
      {
        title: "What they differ by: W^Q of each head",
        about:
          `x, and the matrix of ${read.x.columns} × ${own} numbers by which each head makes its queries of it. ` +
          "W^K and W^V differ as these do.",
        steps: ["x", ...names("w_q")],
      },
      {
        title: "What comes out",
        about: "z has what the heads gathered, side by side; W^O mixes it.",
        steps: ["z", "w_o", "output"],
      },
    ],
    said: saidOf(trace, values, read),
  };
}

const sizes: Slider = {
  name: "size",
  label: "The heads' numbers",
  choices: [trained, 1, 6, 24, 96],
  start: trained,
  words: (size) => {
    if (size === trained) return "as trained, 24 a query";
    return `random, ${size} a query${size === 96 ? ": as many as a row has" : ""}`;
  },
};

export const uniqueHeads: Play = {
  name: "unique-heads",
  lead: [
    `This page holds a small translator from English to German whose layers have ${heads} heads. Its matrices are ` +
      "rounded to 8 bits a number, so that the page stays small. Each head reads your sentence and makes a map of " +
      "its own of it: which word reads how much of which.",
    "A row of 96 numbers for each word comes in, and a head makes a query, a key and a value of 24 numbers of it. Is " +
      "it this that makes the heads differ?",
  ],
  guess: {
    ask: "What makes the maps of these heads differ?",
    choices: [
      "Each reads another part of the 96 numbers",
      "Each has other numbers in its matrices",
      "They are small: heads as wide as a row would all be alike",
    ],
    right: 1,
    why:
      "Every head reads all 96 numbers of every row. Give the heads other random numbers, of any size, and their " +
      "maps differ; give them the same, and the maps are the same.",
  },
  sliders: [
    {
      name: "alike",
      label: "Share of head 0's numbers that the others take",
      choices: [0, 0.25, 0.5, 0.75, 0.9, 1],
      start: 0,
      words: percent,
    },
    { name: "layer", label: "Layer of the encoder", choices: [0, 1], start: 1, words: String },
    sizes,
    { ...numbersSlider(6), label: "Other numbers of random heads" },
  ],
  reads: { first: "the small dog sees a cat .", layer: (values) => chosenValue(values, "layer") },
  show,
};
