// One attention layer in numbers, under the names and formulas that `multihead trace` gives its tensors.
import type { Axis, Walk, WalkStep } from "../page";
import { headsOf, type Steps } from "../walk";
import { cutToRank } from "./rank";
import { addRow, beside, mapped, matrixOf, type Matrix, product, softmax, turned } from "./matrix";

const parts = ["q", "k", "v"] as const;
type Part = (typeof parts)[number];

/** W_i^Q, W_i^K [d, d_k] and W_i^V [d, d_v] of one head. */
export interface HeadWeights {
  q: Matrix;
  k: Matrix;
  v: Matrix;
  /** Rows [1, d_k] and [1, d_v] that are added to queries, keys and values; unset: none are. */
  biases?: { [part in Part]: Matrix };
}

/** The heads, and W^O [h d_v, d]. */
export interface Layer {
  heads: readonly HeadWeights[];
  output: Matrix;
  /** A row [1, d] that is added to the output; unset: none is. */
  outputBias?: Matrix;
}

type Axes = readonly [Axis, Axis];
const numbers: Axes = ["numbers", "numbers"];
const perQuery: Axes = ["queries", "numbers"];
const perKey: Axes = ["keys", "numbers"];
const map: Axes = ["queries", "keys"];

/** Tensors one after the other, as a walk has them. */
export class Trace {
  private readonly steps: WalkStep[] = [];
  private readonly made = new Map<string, Matrix>();
  private bytes = 0;

  /** heads: to which it belongs; empty: all. */
  add(name: string, formula: string, of: Matrix, axes: Axes, heads: number[] = []): Matrix {
    const bytes = 4 * of.values.length;
    this.steps.push({
      name,
      formula,
      heads,
      rows: of.rows,
      columns: of.columns,
      row_axis: axes[0],
      column_axis: axes[1],
      numbers: { offset: this.bytes, bytes },
    });
    this.bytes += bytes;
    this.made.set(name, of);
    return of;
  }

  get(name: string): Matrix {
    const found = this.made.get(name);
    if (!found) throw new Error(`there is no ${name}`);
    return found;
  }

  walk(): Walk {
    return { attention: "", steps: this.steps };
  }

  /** All numbers as float32, in the order of the steps. */
  buffer(): ArrayBuffer {
    const all = new Float32Array(this.bytes / 4);
    for (const { name, numbers: block } of this.steps) all.set(this.get(name).values, block.offset / 4);
    return all.buffer;
  }
}

/** softmax(Q K^T / √d_k) V: scores, scaled scores, weights and what they gather, under names that end with `ending`. */
function attend(trace: Trace, ending: string, [q, k, v]: readonly [Matrix, Matrix, Matrix], heads: number[]): Matrix {
  const scores = trace.add(`scores${ending}`, `q${ending} k${ending}^T`, product(q, turned(k)), map, heads);
  const weights = weigh(trace, ending, scores, q.columns, heads);
  return trace.add(`z${ending}`, `weights${ending} v${ending}`, product(weights, v), perQuery, heads);
}

/** softmax(scores / √width): the scaled scores and the weights. */
function weigh(trace: Trace, ending: string, scores: Matrix, width: number, heads: number[]): Matrix {
  const scale = 1 / Math.sqrt(width);
  const formula = `${Number(scale.toPrecision(4))} scores${ending}`;
  const scaled = trace.add(
    `scaled${ending}`,
    formula,
    mapped(scores, (score) => score * scale),
    map,
    heads,
  );
  return trace.add(`weights${ending}`, `softmax of the rows of scaled${ending}`, softmax(scaled), map, heads);
}

/** The layer on rows x [T, d]. */
export function traceOf(x: Matrix, layer: Layer): Trace {
  const trace = new Trace();
  trace.add("x", "the rows that come in", x, perQuery);
  layer.heads.forEach((head, i) => {
    const projected = (part: Part) => {
      const of = affine(trace, { name: `_${part}_${i}`, of: "x", w: head[part], b: head.biases?.[part] }, [i]);
      return trace.add(`${part}_${i}`, of.formula, of.made, part === "q" ? perQuery : perKey, [i]);
    };
    attend(trace, `_${i}`, [projected("q"), projected("k"), projected("v")], [i]);
  });
  const names = (part: string) => layer.heads.map((_, i) => `${part}_${i}`);
  trace.add("z", sideBySide(names("z")), beside(names("z").map((name) => trace.get(name))), perQuery);
  const output = affine(trace, { name: "_o", of: "z", w: layer.output, b: layer.outputBias }, []);
  trace.add("output", output.formula, output.made, perQuery);
  return trace;
}

/** Adds w`name` and, where there is one, b`name`; gives `of` w + b, and how that is written. */
function affine(
  trace: Trace,
  { name, of, w, b }: { name: string; of: string; w: Matrix; b: Matrix | undefined },
  heads: number[],
): { made: Matrix; formula: string } {
  const rows = name === "_o" ? "learned: its rows meet each head's z in turn" : "learned";
  const made = product(trace.get(of), trace.add(`w${name}`, rows, w, numbers, heads));
  if (!b) return { made, formula: `${of} w${name}` };
  return {
    made: addRow(made, trace.add(`b${name}`, "learned", b, numbers, heads)),
    formula: `${of} w${name} + b${name}`,
  };
}

/** The rows that come in, and the layer, of what `multihead trace` made of an attention. */
export function layerOf(steps: Steps): { x: Matrix; layer: Layer } {
  const found = (name: string): Matrix | undefined => {
    const step = steps.get(name);
    return step && matrixOf(step.rows, step.columns, steps.values(step));
  };
  const get = (name: string): Matrix => {
    const of = found(name);
    if (!of) throw new Error(`the attention has no ${name}`);
    return of;
  };
  const heads = headsOf(steps.walk).map((i): HeadWeights => {
    const [q, k, v] = parts.map((part) => get(`w_${part}_${i}`)) as [Matrix, Matrix, Matrix];
    const [bq, bk, bv] = parts.map((part) => found(`b_${part}_${i}`));
    return { q, k, v, ...(bq && bk && bv ? { biases: { q: bq, k: bk, v: bv } } : {}) };
  });
  const outputBias = found("b_o");
  return { x: get("x"), layer: { heads, output: get("w_o"), ...(outputBias ? { outputBias } : {}) } };
}

const sideBySide = (names: string[]): string => `[${names.join(" | ")}], side by side`;

/** The same matrices as one head, with one softmax: adds q, k, v, scores, scaled, weights, z_uncut and output_uncut. */
export function addUncut(trace: Trace, heads: number): void {
  const whole = (part: Part): Matrix => {
    const names = Array.from({ length: heads }, (_, i) => `${part}_${i}`);
    const parts = beside(names.map((name) => trace.get(name)));
    return trace.add(`${part}_uncut`, sideBySide(names), parts, part === "q" ? perQuery : perKey);
  };
  const z = attend(trace, "_uncut", [whole("q"), whole("k"), whole("v")], []);
  trace.add("output_uncut", "z_uncut w_o", product(z, trace.get("w_o")), perQuery);
}

/**
 * Head 0 with one matrix in place of two: adds w_one = w_q_0 w_k_0^T and the scores x w_one x^T; then the same of
 * w_cut, the matrix of rank `rank` that is nearest to w_one, up to what the layer then gives, output_cut.
 */
export function addOneMatrix(trace: Trace, rank: number): void {
  const [x, q, k] = [trace.get("x"), trace.get("w_q_0"), trace.get("w_k_0")];
  const scored = (ending: string, w: Matrix): Matrix => {
    const left = trace.add(`x_${ending}`, `x w_${ending}`, product(x, w), perQuery, [0]);
    return trace.add(`scores_${ending}`, `x_${ending} x^T`, product(left, turned(x)), map, [0]);
  };
  const one = trace.add("w_one", "w_q_0 w_k_0^T", product(q, turned(k)), numbers, [0]);
  scored("one", one);
  const { left, right } = cutToRank(one, rank);
  trace.add("w_left", `learned: w_one cut to rank ${rank}, its columns`, left, numbers, [0]);
  trace.add("w_right", `learned: w_one cut to rank ${rank}, its rows`, right, numbers, [0]);
  const cut = trace.add("w_cut", "w_left w_right^T", product(left, turned(right)), numbers, [0]);
  const weights = weigh(trace, "_cut", scored("cut", cut), q.columns, [0]);
  const gathered = trace.add("z_0_cut", "weights_cut v_0", product(weights, trace.get("v_0")), perQuery, [0]);
  const z = trace.add("z_cut", sideBySide(["z_0_cut", "z_1"]), beside([gathered, trace.get("z_1")]), perQuery);
  trace.add("output_cut", "z_cut w_o", product(z, trace.get("w_o")), perQuery);
}
