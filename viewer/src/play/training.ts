// Two heads that are trained to give what two other heads give: gradient descent in full, so that every number can be
// followed.
import type { HeadWeights, Layer } from "./layer";
import {
  add,
  cell,
  halfMeanSquare,
  length,
  less,
  mapped,
  matrix,
  type Matrix,
  product,
  softmax,
  sum,
  turned,
} from "./matrix";
import { normal, randomMatrix } from "./random";

/** Rows that are read, and their width. */
const rows = 12;
const d = 8;
/** Moments of a training at which its heads are kept, and steps between them. */
export const moments = 40;
export const stepsBetween = 30;
const rate = 0.1;
/** No step follows a longer gradient than this: a first step from random numbers may be too large. */
const longest = 2;

export interface TrainingOptions {
  /** How far head 1 begins from head 0, as a share of the size of their numbers; 0: equal to the last bit. */
  apart: number;
  /** Numbers of a query, a key and a value. */
  width: number;
  seed: number;
}

/** W_i^O of each head beside its other matrices. */
export interface Head extends HeadWeights {
  o: Matrix;
}

export interface Moment {
  step: number;
  /** Half of the mean square of what the output is off by. */
  loss: number;
  /**
   * |C_0 − C_1| / (|C_0| + |C_1|), where C_i = A_i V_i W_i^O is what head i adds to the output: 0 equal, 1 opposite.
   */
  distance: number;
  layer: Layer;
}

const parts = ["q", "k", "v", "o"] as const;

function randomHead(width: number, next: () => number): Head {
  const tall = () => randomMatrix(d, width, 1 / Math.sqrt(d), next);
  return { q: tall(), k: tall(), v: tall(), o: randomMatrix(width, d, 1 / Math.sqrt(width), next) };
}

const noisy = (head: Head, apart: number, next: () => number): Head => ({
  q: add(
    head.q,
    mapped(head.q, () => (apart * next()) / Math.sqrt(d)),
  ),
  k: add(
    head.k,
    mapped(head.k, () => (apart * next()) / Math.sqrt(d)),
  ),
  v: add(
    head.v,
    mapped(head.v, () => (apart * next()) / Math.sqrt(d)),
  ),
  o: add(
    head.o,
    mapped(head.o, () => (apart * next()) / Math.sqrt(head.o.rows)),
  ),
});

/** What one head makes of rows x, and what its gradient needs. */
export interface Pass {
  q: Matrix;
  k: Matrix;
  v: Matrix;
  weights: Matrix;
  z: Matrix;
  /** A V W^O */
  adds: Matrix;
}

export function run(x: Matrix, head: Head): Pass {
  const [q, k, v] = [product(x, head.q), product(x, head.k), product(x, head.v)];
  const scale = 1 / Math.sqrt(q.columns);
  const weights = softmax(mapped(product(q, turned(k)), (score) => score * scale));
  const z = product(weights, v);
  return { q, k, v, weights, z, adds: product(z, head.o) };
}

/** The gradients of a head's matrices, from that of the output. */
export function gradient(x: Matrix, head: Head, pass: Pass, ofOutput: Matrix): Head {
  const scale = 1 / Math.sqrt(pass.q.columns);
  const ofZ = product(ofOutput, turned(head.o));
  const ofWeights = product(ofZ, turned(pass.v));
  const ofScores = matrix(pass.weights.rows, pass.weights.columns, (i, j) => {
    let mean = 0;
    for (let n = 0; n < pass.weights.columns; n++) mean += cell(pass.weights, i, n) * cell(ofWeights, i, n);
    return scale * cell(pass.weights, i, j) * (cell(ofWeights, i, j) - mean);
  });
  const above = turned(x);
  return {
    q: product(above, product(ofScores, pass.k)),
    k: product(above, product(turned(ofScores), pass.q)),
    v: product(above, product(turned(pass.weights), ofZ)),
    o: product(turned(pass.z), ofOutput),
  };
}

/** The output of two heads less what it should be, and half of its mean square. */
export function lossOf(passes: readonly Pass[], wanted: Matrix): { off: Matrix; loss: number } {
  const of = less(sum(passes.map((pass) => pass.adds)), wanted);
  return { off: of, loss: halfMeanSquare(of) };
}

export class Training {
  readonly x: Matrix;
  /** What the output should be. */
  readonly wanted: Matrix;
  private heads: Head[];

  constructor({ apart, width, seed }: TrainingOptions) {
    const next = normal(seed);
    this.x = randomMatrix(rows, d, 1, next);
    // Sharp heads of another width, so that one head cannot do what two do.
    const teachers = [0, 1].map(() => {
      const head = randomHead(4, next);
      return { ...head, q: mapped(head.q, (value) => 3 * value) };
    });
    const given = sum(teachers.map((head) => run(this.x, head).adds));
    const size = length(given) / Math.sqrt(given.values.length);
    this.wanted = mapped(given, (value) => value / size);
    const first = randomHead(width, next);
    this.heads = [first, apart === 0 ? first : noisy(first, apart, next)];
  }

  loss(): number {
    return lossOf(
      this.heads.map((head) => run(this.x, head)),
      this.wanted,
    ).loss;
  }

  moment(step: number): Moment {
    const passes = this.heads.map((head) => run(this.x, head));
    const [a, b] = passes.map((pass) => pass.adds) as [Matrix, Matrix];
    const { loss } = lossOf(passes, this.wanted);
    const output = this.heads.flatMap((head) => Array.from({ length: head.o.rows }, (_, row) => ({ head, row })));
    return {
      step,
      loss,
      distance: length(less(a, b)) / (length(a) + length(b)),
      layer: {
        heads: this.heads.map(({ q, k, v }) => ({ q, k, v })),
        output: matrix(output.length, d, (i, j) => {
          const { head, row } = output[i] as (typeof output)[number];
          return cell(head.o, row, j);
        }),
      },
    };
  }

  step(): void {
    const passes = this.heads.map((head) => run(this.x, head));
    const { off: error } = lossOf(passes, this.wanted);
    const ofOutput = mapped(error, (value) => value / rows);
    const gradients = this.heads.map((head, i) => gradient(this.x, head, passes[i] as Pass, ofOutput));
    const size = Math.hypot(...gradients.flatMap((by) => parts.map((part) => length(by[part]))));
    const share = rate * Math.min(1, longest / size);
    this.heads = this.heads.map((head, i) => {
      const by = gradients[i] as Head;
      const moved = (part: (typeof parts)[number]) =>
        less(
          head[part],
          mapped(by[part], (value) => share * value),
        );
      return { q: moved("q"), k: moved("k"), v: moved("v"), o: moved("o") };
    });
  }
}

/** The moments of a training, each as soon as it is there. */
export function* trained(options: TrainingOptions): Generator<Moment> {
  const training = new Training(options);
  for (let n = 0; n <= moments; n++) {
    yield training.moment(n * stepsBetween);
    for (let step = 0; step < stepsBetween; step++) training.step();
  }
}
