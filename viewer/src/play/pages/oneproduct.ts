// One product, h softmaxes: the matrices of h heads with a softmax each, and the same numbers uncut with one.
import { addUncut, type Layer, traceOf, type Trace } from "../layer";
import { cell, largest, length, less, matrix, type Matrix, moved } from "../matrix";
import { type Play, type Shown, type Values, chosenValue, numbersSlider, wordsSlider } from "../play";
import { normal, randomMatrix } from "../random";
import { percent } from "../../names";

/** Width of rows, and of all heads together. */
const d = 8;

/** The scores of all heads come from the same numbers, however they are cut: column c of W^Q is one list. */
function layerOf(heads: number, sharpness: number, next: () => number): Layer {
  const whole = {
    q: randomMatrix(d, d, sharpness, next),
    k: randomMatrix(d, d, sharpness, next),
    v: randomMatrix(d, d, 0.6, next),
  };
  const width = d / heads;
  const own = (of: Matrix, head: number) => matrix(d, width, (i, j) => cell(of, i, head * width + j));
  return {
    heads: Array.from({ length: heads }, (_, head) => ({
      q: own(whole.q, head),
      k: own(whole.k, head),
      v: own(whole.v, head),
    })),
    output: randomMatrix(d, d, 0.5, next),
  };
}

/** The maps multiplied, each to the power 1/√h, rows rescaled: the one map, by another way. */
export function productOfMaps(maps: readonly Matrix[]): Matrix {
  const [first] = maps;
  if (!first) throw new Error("a product of no maps");
  const raised = matrix(first.rows, first.columns, (i, j) =>
    maps.reduce((all, map) => all * cell(map, i, j) ** (1 / Math.sqrt(maps.length)), 1),
  );
  return matrix(first.rows, first.columns, (i, j) => {
    let sum = 0;
    for (let n = 0; n < first.columns; n++) sum += cell(raised, i, n);
    return cell(raised, i, j) / sum;
  });
}

export interface Compared {
  /** Of each row's attention, what would have to move to make the one map that of the nearest head. */
  toNearest: number;
  /** How far apart the outputs are, as a share of the length of the one with heads. */
  output: number;
  /** The largest difference of the one map and the product of the heads' maps. */
  fromProduct: number;
}

export function compared(trace: Trace, heads: number): Compared {
  const maps = Array.from({ length: heads }, (_, i) => trace.get(`weights_${i}`));
  const one = trace.get("weights_uncut");
  const output = trace.get("output");
  return {
    toNearest: Math.min(...maps.map((map) => moved(map, one))),
    output: length(less(output, trace.get("output_uncut"))) / length(output),
    fromProduct: largest(less(one, productOfMaps(maps))),
  };
}

function show(values: Values): Shown {
  const [heads, words, tenths] = [
    chosenValue(values, "heads"),
    chosenValue(values, "words"),
    chosenValue(values, "sharp"),
  ];
  const next = normal(chosenValue(values, "numbers"));
  const x = randomMatrix(words, d, 1, next);
  const trace = traceOf(x, layerOf(heads, tenths / 10, next));
  addUncut(trace, heads);
  const { toNearest, output, fromProduct } = compared(trace, heads);
  const names = (part: string) => Array.from({ length: heads }, (_, i) => `${part}_${i}`);
  const same = output < 1e-9;
  return {
    trace,
    rows: [
      {
        title: heads === 1 ? "One head: one map" : `${heads} heads: ${heads} maps`,
        about:
          "The queries of all heads come out of one product, x W^Q, and so do keys and values. Then " +
          `each head takes a softmax of its own, of its scores divided by √${d / heads}.`,
        steps: names("weights"),
      },
      {
        title: "The same numbers uncut: one map",
        about: `Queries and keys of all heads side by side, their scores divided by √${d}, and one softmax.`,
        steps: ["weights_uncut"],
      },
      {
        title: "What comes out",
        about: "z has what the heads gathered, side by side; W^O mixes it. After them the same with the one map.",
        steps: ["z", "w_o", "output", "z_uncut", "output_uncut"],
      },
    ],
    said: same
      ? [
          heads === 1 || words === 1
            ? `With one ${heads === 1 ? "head there is nothing to cut" : "word there is nothing to choose"}: ` +
              "both ways are the same."
            : "Without any score every word reads all words equally, in every head: then one map is as good as many.",
        ]
      : [
          `The one map is no head's: to become even that of the nearest head, ${percent(toNearest)} of each row ` +
            "would have to move.",
          `The output differs by ${percent(output)} of its length.`,
          `The one map is the heads' maps multiplied, each to the power 1/√${heads}, rows rescaled: ` +
            `the largest difference is ${fromProduct.toExponential(0)}.`,
        ],
  };
}

export const oneProduct: Play = {
  name: "one-product",
  lead: [
    "A layer with heads reads a row of 8 numbers for each word. Programs do not loop over " +
      "heads: they multiply once, by one large matrix W^Q that holds those of all heads side by " +
      "side, and cut the result.",
    "So is the cut only a way to write it? Take the same large matrices and do not cut: one head, one softmax.",
  ],
  guess: {
    ask: "What does the layer give without the cut?",
    choices: ["The same numbers", "The same but for rounding", "Something else"],
    right: 2,
    why: "The products are the same, but one softmax of all scores together is another map than that of any head.",
  },
  sliders: [
    {
      name: "heads",
      label: "Heads",
      choices: [1, 2, 4, 8],
      start: 4,
      words: (heads) => `${heads}, of ${d / heads} numbers each`,
    },
    wordsSlider,
    {
      name: "sharp",
      label: "Size of W^Q and W^K",
      choices: [0, 1, 2, 4, 6, 8, 10, 15],
      start: 6,
      words: (tenths) => (tenths === 0 ? "0: no scores" : (tenths / 10).toFixed(1)),
    },
    numbersSlider(10),
  ],
  show,
};
