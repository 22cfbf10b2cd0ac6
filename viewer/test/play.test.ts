// The numbers of the pages to play with: their algebra, what training does, and the layer beside the tool's
// (MULTIHEAD_TOOL; without it that test is left out).
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { chosenOf, first, fragmentOf, mostText } from "../src/play/address";
import { powers } from "../src/play/chart";
import { addOneMatrix, addUncut, type HeadWeights, traceOf } from "../src/play/layer";
import { cell, largest, length, less, type Matrix, mapped, matrix, product, turned } from "../src/play/matrix";
import { diversity, optionsOf } from "../src/play/pages/diversity";
import { compared, oneProduct, productOfMaps } from "../src/play/pages/oneproduct";
import { kept, rotation, splitOrProject, traceAt } from "../src/play/pages/splitorproject";
import { costOfOne, costOfTwo, twoMatrices } from "../src/play/pages/twomatrices";
import {
  alike,
  apart,
  lessProbable,
  mostRead,
  partsOfOutput,
  randomLayer,
  uniqueHeads,
} from "../src/play/pages/uniqueheads";
import type { Play, ReadText, Trained, Values } from "../src/play/play";
import { normal, randomMatrix, uniform } from "../src/play/random";
import { cutToRank, factorsOf } from "../src/play/rank";
import { readWalk } from "../src/play/reading";
import { gradient, type Head, lossOf, run, Training, trained } from "../src/play/training";
import { type Piece, piecesOf } from "../src/play/typeset";
import { Steps } from "../src/walk";

const tool = process.env.MULTIHEAD_TOOL ?? "";
/** A sentence that a layer of four heads with biases has read. */
function readText(words: string[], seed: number): ReadText {
  const next = normal(seed);
  const row = (size: number) => randomMatrix(1, size, 0.3, next);
  const layer = randomLayer(12, 3, seed);
  const heads = layer.heads.map((head) => ({ ...head, biases: { q: row(3), k: row(3), v: row(3) } }));
  return {
    text: words.join(" "),
    words,
    x: randomMatrix(words.length, 12, 1, next),
    layer: { heads, output: layer.output, outputBias: row(12) },
    says: "so",
    losses: [0.5, 0, -0.25, 2],
  };
}

const startOf = (play: Play): Values => first(play.sliders).values;

function layer(heads: number, d: number, width: number, seed: number) {
  const next = normal(seed);
  const x = randomMatrix(5, d, 1, next);
  const head = (): HeadWeights => {
    const [q, k, v] = [0, 1, 2].map(() => randomMatrix(d, width, 0.7, next)) as [Matrix, Matrix, Matrix];
    return { q, k, v };
  };
  const all = Array.from({ length: heads }, head);
  return { x, layer: { heads: all, output: randomMatrix(heads * width, d, 0.5, next) } };
}

describe("random numbers", () => {
  it("are the same of the same seed, and have mean 0 and variance 1", () => {
    const [a, b] = [normal(7), normal(7)];
    const all = Array.from({ length: 20_000 }, a);
    expect(Array.from({ length: 20_000 }, b)).toEqual(all);
    const mean = all.reduce((sum, value) => sum + value, 0) / all.length;
    expect(Math.abs(mean)).toBeLessThan(0.03);
    expect(all.reduce((sum, value) => sum + value * value, 0) / all.length).toBeCloseTo(1, 1);
    expect(uniform(1)()).not.toBe(uniform(2)());
  });
});

/** A .npy file of float32, [rows, columns]. */
function npy(path: string): Matrix {
  const bytes = readFileSync(path);
  const header = bytes.subarray(10, 10 + bytes.readUInt16LE(8)).toString("latin1");
  const [rows = 0, columns = 0] = (/'shape': \((\d+), (\d+)\)/.exec(header) ?? []).slice(1).map(Number);
  expect(header).toContain("'descr': '<f4'");
  const begin = 10 + bytes.readUInt16LE(8);
  return matrix(rows, columns, (i, j) => bytes.readFloatLE(begin + 4 * (i * columns + j)));
}

describe("a layer", () => {
  it.skipIf(tool === "").each([
    { d: 8, heads: 2, words: 3 },
    { d: 6, heads: 3, words: 7 },
    { d: 5, heads: 1, words: 1 },
    { d: 4, heads: 4, words: 2 },
  ])("has the tensors that the tool prints, of $heads heads of $d numbers", ({ d, heads, words }) => {
    const folder = mkdtempSync(join(tmpdir(), "multihead-"));
    const size = ["--d-model", String(d), "--heads", String(heads), "--tokens", String(words)];
    execFileSync(tool, ["--quiet", "trace", ...size, "--save", folder]);
    const read = (name: string) => npy(join(folder, `${name}.npy`));
    const biases = ["q", "k", "v"].flatMap((part) => Array.from({ length: heads }, (_, i) => read(`b_${part}_${i}`)));
    expect(Math.max(...[...biases, read("b_o")].map(largest)), "the tool's random layer has no biases").toBe(0);
    const own = (i: number): HeadWeights => ({ q: read(`w_q_${i}`), k: read(`w_k_${i}`), v: read(`w_v_${i}`) });
    const trace = traceOf(read("x"), { heads: Array.from({ length: heads }, (_, i) => own(i)), output: read("w_o") });
    const names = trace.walk().steps.map(({ name }) => name);
    expect(names.length).toBe(4 + heads * 10);
    for (const name of names) {
      const [found, wanted] = [trace.get(name), read(name)];
      expect([found.rows, found.columns], name).toEqual([wanted.rows, wanted.columns]);
      expect(largest(less(found, wanted)), name).toBeLessThanOrEqual(1e-6 * Math.max(1, largest(wanted)));
    }
  });

  it("opens the sum of each of its cells", () => {
    const { x, layer: of } = layer(2, 6, 3, 1);
    const trace = traceOf(x, of);
    addUncut(trace, 2);
    addOneMatrix(trace, 2);
    const steps = new Steps(trace.walk(), trace.buffer());
    for (const step of trace.walk().steps) {
      const sum = steps.sum(step, step.rows - 1, step.columns - 1);
      expect(sum.value, step.name).toBeCloseTo(cell(trace.get(step.name), step.rows - 1, step.columns - 1), 5);
      const given = step.name === "x" || step.formula.startsWith("learned");
      expect(sum.factors.length > 0, step.name).toBe(!given);
      if (sum.terms.length === 0 || step.formula.startsWith("softmax")) continue;
      expect(
        sum.terms.reduce((all, term) => all + term.product, 0),
        step.name,
      ).toBeCloseTo(sum.value, 3);
    }
  });

  it("is, uncut, one map: the heads' maps multiplied, each to the power 1/√h", () => {
    for (const heads of [1, 2, 3, 5]) {
      const { x, layer: of } = layer(heads, 2 * heads, 2, heads);
      const trace = traceOf(x, of);
      addUncut(trace, heads);
      const maps = Array.from({ length: heads }, (_, i) => trace.get(`weights_${i}`));
      expect(largest(less(productOfMaps(maps), trace.get("weights_uncut")))).toBeLessThan(1e-12);
      expect(compared(trace, heads).output > 1e-3, `${heads} heads`).toBe(heads > 1);
    }
  });
});

describe("a rotation of rows", () => {
  it("keeps lengths and angles", () => {
    for (const degrees of [0, 17, 45]) {
      const one = product(rotation(degrees), turned(rotation(degrees)));
      expect(
        largest(
          less(
            one,
            matrix(8, 8, (i, j) => (i === j ? 1 : 0)),
          ),
        ),
      ).toBeLessThan(1e-14);
    }
    expect(largest(rotation(45))).toBeCloseTo(1 / Math.sqrt(8), 12);
  });

  it("takes nothing from a head that reads all numbers, and much from one with a part", () => {
    const start = startOf(splitOrProject);
    const before = traceAt({ ...start, turned: 0 }).trace;
    for (const turnedBy of [10, 45]) {
      const { trace, layer: of } = traceAt({ ...start, turned: turnedBy });
      for (const name of ["weights_0", "z_0"])
        expect(largest(less(trace.get(name), before.get(name))), name).toBeLessThan(1e-12);
      expect(largest(less(trace.get("weights_1"), before.get("weights_1")))).toBeGreaterThan(0.01);
      expect(kept(of)).toBeLessThan(0.95);
    }
    expect(kept(traceAt({ ...start, turned: 0 }).layer)).toBe(1);
    expect(kept(traceAt({ ...start, turned: 45, heads: 1 }).layer)).toBe(1);
    expect(kept(traceAt({ ...start, turned: 45, heads: 4 }).layer)).toBeCloseTo(0.25, 10);
  });
});

describe("the nearest matrix of a lower rank", () => {
  const next = normal(11);
  it.each([
    { name: "tall", of: randomMatrix(7, 5, 1, next) },
    { name: "square", of: randomMatrix(8, 8, 1, next) },
    { name: "of rank 2", of: product(randomMatrix(8, 2, 1, next), randomMatrix(2, 8, 1, next)) },
    { name: "of zeros", of: matrix(4, 3, () => 0) },
  ])("is off by the singular values that it lacks, $name", ({ of }) => {
    const { left, right, values } = factorsOf(of);
    expect(largest(less(product(left, turned(right)), of))).toBeLessThan(1e-13 * Math.max(1, largest(of)));
    expect(
      largest(
        less(
          product(turned(right), right),
          matrix(of.columns, of.columns, (i, j) => +(i === j)),
        ),
      ),
    ).toBeLessThan(1e-13);
    const squares = product(turned(left), left);
    expect(
      largest(
        less(
          squares,
          matrix(of.columns, of.columns, (i, j) => (i === j ? (values[i] ?? 0) ** 2 : 0)),
        ),
      ),
    ).toBeLessThan(1e-12);
    expect(values).toEqual([...values].sort((a, b) => b - a));
    for (let rank = 0; rank <= of.columns; rank++) {
      const cut = cutToRank(of, rank);
      const lost = Math.sqrt(values.slice(rank).reduce((sum, value) => sum + value * value, 0));
      expect(length(less(product(cut.left, turned(cut.right)), of))).toBeCloseTo(lost, 12);
    }
  });
});

describe("one matrix in place of two", () => {
  it.each([1, 2, 3, 6])("gives the same scores, and of rank %i the same output", (width) => {
    const { x, layer: of } = layer(2, 6, width, 4);
    for (let rank = 0; rank <= 6; rank++) {
      const trace = traceOf(x, of);
      addOneMatrix(trace, rank);
      expect(largest(less(trace.get("scores_one"), trace.get("scores_0")))).toBeLessThan(1e-14 * 6 * 25);
      const off = largest(less(trace.get("output_cut"), trace.get("output")));
      if (rank >= width) expect(off).toBeLessThan(1e-13);
      else expect(off).toBeGreaterThan(1e-3);
      if (rank === 0) expect(trace.get("weights_cut")).toEqual(mapped(trace.get("weights_0"), () => 1 / 5));
    }
  });

  it("costs what the answer says", () => {
    const answer = readFileSync(join(__dirname, "../../docs/answers/two-matrices-or-one.md"), "utf8");
    const row = (begin: string) => {
      const cells = (answer.split("\n").find((line) => line.startsWith(`| ${begin}`)) ?? "").split("|");
      const [numbers, multiplications] = [cells[2], cells[4]].map((text) => Number((text ?? "").replace(/,/g, "")));
      return { numbers, multiplications };
    };
    expect(costOfTwo(512, 64, 10)).toEqual(row("two factors, d_k = 64"));
    expect(costOfOne(512, 10)).toEqual(row("one matrix W_i"));
    expect(costOfTwo(512, 512, 10)).toEqual(row("two factors of full size"));
  });

  it("says what a cut costs, and that none costs nothing", () => {
    const values = { ...startOf(twoMatrices), width: 2, rank: 1 };
    const options = twoMatrices.train?.(values) ?? { apart: 1, width: 2, seed: 1 };
    const course: Trained[] = [{ options, moments: [...trained(options)] }];
    const [cut, same, cost] = twoMatrices.show(values, course).said;
    expect(cut).toMatch(
      /^Cut to rank 1, W has lost \d.* of the sum of its squares: .* the loss goes from \S+ to \S+\.$/,
    );
    expect(same).toMatch(
      /^One matrix gives the same scores: the largest difference is \S+\. It has 64 numbers here, the two .* 32\.$/,
    );
    expect(cost).toContain("65,536 numbers a head. One has 262,144, 4 times as many,");
    const whole = twoMatrices.show({ ...values, rank: 2 }, course).said[0];
    expect(whole).toMatch(
      /^W has rank 2, as many as a query has numbers: at rank 2 nothing is lost, and the loss stays /,
    );
    expect(twoMatrices.show({ ...values, heads: 1 }, course).said[2]).toContain("half as many");
    expect(twoMatrices.show({ ...values, heads: 2 }, course).said[2]).toContain("262,144, as many,");
  });
});

describe("a training", () => {
  it("follows the gradient", () => {
    const next = normal(3);
    const x = randomMatrix(5, 6, 1, next);
    const wanted = randomMatrix(5, 6, 1, next);
    const [q, k, v] = [0, 1, 2].map(() => randomMatrix(6, 3, 0.7, next)) as [Matrix, Matrix, Matrix];
    const head: Head = { q, k, v, o: randomMatrix(3, 6, 0.7, next) };
    const pass = run(x, head);
    const off = less(pass.adds, wanted);
    const found = gradient(x, head, pass, { ...off, values: off.values.map((value) => value / off.values.length) });
    for (const part of ["q", "k", "v", "o"] as const) {
      const step = 1e-5;
      head[part].values.forEach((value, at) => {
        const at_ = (by: number) => {
          const values = head[part].values.slice();
          values[at] = value + by;
          return lossOf([run(x, { ...head, [part]: { ...head[part], values } })], wanted).loss;
        };
        expect(found[part].values[at]).toBeCloseTo((at_(step) - at_(-step)) / (2 * step), 8);
      });
    }
  });

  it.each([1, 4, 8])("leaves heads that begin equal equal to the last bit, of %i numbers", (width) => {
    const all = [...trained({ apart: 0, width, seed: 2 })];
    expect(all.map(({ distance }) => distance)).toEqual(all.map(() => 0));
    const [a, b] = all.at(-1)?.layer.heads ?? [];
    expect(a).toEqual(b);
    expect(all.at(-1)?.loss).toBeLessThan(0.5 * (all[0]?.loss ?? 0));
  });

  it("drives heads apart that begin a little apart, and makes them better", () => {
    const [equal, apart] = [0, 1e-8].map((by) => [...trained({ apart: by, width: 4, seed: 1 })]);
    expect(apart?.[0]?.distance).toBeLessThan(1e-7);
    expect(apart?.at(-1)?.distance).toBeGreaterThan(0.1);
    expect((equal?.at(-1)?.loss ?? 0) / (apart?.at(-1)?.loss ?? 1)).toBeGreaterThan(2);
    expect(new Training({ apart: 0, width: 4, seed: 1 }).moment(0).loss).toBe(equal?.[0]?.loss);
  });
});

describe("heads on a sentence", () => {
  const read = readText(["the", "dog", "sees", "it", "</s>"], 3);

  it.skipIf(tool === "").each([0, 1])("are those that the tool traces, of layer %i", async (layer) => {
    const folder = mkdtempSync(join(tmpdir(), "multihead-"));
    const sentence = "two dogs see a cat .";
    const attention = `encoder.${layer}.self_attention`;
    execFileSync(tool, ["--quiet", "trace", "demo", "--text", sentence, "--attention", attention, "--save", folder]);
    const file = join(folder, "page.html");
    const how = ["--no-importance", "--walk", attention, "--output", file];
    execFileSync(tool, ["--quiet", "view", "demo", sentence, ...how]);
    const data = /<script id="data"[^>]*>([^<]*)/.exec(readFileSync(file, "utf8"))?.[1] ?? "";
    const { words, x, layer: of } = await readWalk(data);
    expect(words.join(" ")).toMatch(/two dogs see a cat \. <\/s>/);
    const trace = traceOf(x, of);
    const names = trace.walk().steps.map(({ name }) => name);
    expect(names.length).toBe(5 + 4 * 13);
    for (const name of names) {
      const wanted = npy(join(folder, `${name}.npy`));
      // The tool adds up in float32.
      expect(largest(less(trace.get(name), wanted)), name).toBeLessThanOrEqual(2e-6 * Math.max(1, largest(wanted)));
    }
  });

  it("have one map, and are worth one head, once they have the same numbers", () => {
    const same = traceOf(read.x, alike(read.layer, 1));
    expect(apart(same)).toBe(0);
    const [head] = read.layer.heads as [HeadWeights];
    const all = read.layer.output;
    const summed = matrix(3, 12, (i, j) => [0, 1, 2, 3].reduce((sum, of) => sum + cell(all, 3 * of + i, j), 0));
    const one = traceOf(read.x, { ...read.layer, heads: [head], output: summed });
    expect(largest(less(one.get("output"), same.get("output")))).toBeLessThan(1e-12);
    const half = apart(traceOf(read.x, alike(read.layer, 0.5)));
    expect(half).toBeGreaterThan(0);
    expect(half).toBeLessThan(apart(traceOf(read.x, alike(read.layer, 0))));
  });

  it.each([1, 6, 24, 96])("differ with random numbers, of %i a query", (size) => {
    const x = randomMatrix(7, 96, 1, normal(2));
    expect(apart(traceOf(x, randomLayer(96, size, 1)))).toBeGreaterThan(0.1);
  });

  it("read most where most of their weights are, and have parts of the output", () => {
    const before = matrix(4, 4, (i, j) => (j === Math.max(0, i - 1) ? 0.7 : 0.1));
    expect(mostRead(before)).toEqual({ where: "the word before", share: expect.closeTo(0.7, 12) });
    const ends = matrix(3, 3, (_, j) => (j === 2 ? 1 : 0));
    expect(mostRead(ends)).toEqual({ where: "the end of the sentence", share: 1 });
    expect(mostRead(matrix(1, 1, () => 1)).share).toBe(1);
    const parts = partsOfOutput(traceOf(read.x, read.layer));
    expect(parts.reduce((sum, one) => sum + one, 0)).toBeCloseTo(1, 12);
    expect(Math.min(...parts)).toBeGreaterThan(0);
  });

  it.each([
    [0, "as probable as with it, to 1 %"],
    [-0.005, "as probable as with it, to 1 %"],
    [2.88, "17.8 times less probable"],
    [-1, "2.72 times more probable"],
    [10.98, "59,000 times less probable"],
    [800, "over a billion times less probable"],
  ])("say what a loss of %s in log p means", (loss, words) => expect(lessProbable(loss)).toBe(words));

  it("say what is lost without them only as they were trained", () => {
    const said = (values: object) => uniqueHeads.show({ ...startOf(uniqueHeads), ...values }, [], read).said.join(" ");
    expect(said({})).toMatch(/Without it, that translation is 1\.65 times less probable\..* 1\.28 times more/);
    expect(said({})).toContain("translation: “so”");
    expect(said({ alike: 1 })).toMatch(/one and the same map: 0 %/);
    for (const other of [{ alike: 0.5 }, { size: 6 }]) expect(said(other)).not.toMatch(/Without it|translation/);
    expect(uniqueHeads.show(startOf(uniqueHeads), [])).toMatchObject({ trace: null, rows: [] });
  });
});

describe("each page", () => {
  const plays: Play[] = [splitOrProject, diversity, twoMatrices, uniqueHeads, oneProduct];

  it.each(plays)("$name shows numbers at both ends of every slider", (play) => {
    const start = startOf(play);
    for (const { name, choices } of play.sliders) {
      for (const value of [choices[0], choices.at(-1)]) {
        const values = { ...start, [name]: value ?? 0 };
        const options = play.train?.(values);
        // A few moments show as much as all.
        const course: Trained[] = options ? [{ options, moments: [new Training(options).moment(0)] }] : [];
        const { trace, rows, said } = play.show(values, course, readText(["a", "b", "c"], 5));
        for (const { name: step } of trace?.walk().steps ?? [])
          expect(trace?.get(step).values.every(Number.isFinite), `${name} ${value}: ${step}`).toBe(true);
        for (const step of rows.flatMap((row) => row.steps)) expect(trace?.get(step), step).toBeDefined();
        expect(
          rows.flatMap((row) => row.steps),
          "W^O is drawn",
        ).toContain("w_o");
        expect(said.join(" "), `${name} ${value}`).not.toMatch(/NaN|undefined|Infinity/);
      }
    }
    expect(play.guess.choices[play.guess.right]).toBeDefined();
    expect(play.sliders.length).toBeGreaterThanOrEqual(3);
  });

  it("says so where nothing has been trained yet", () => {
    expect(diversity.show(startOf(diversity), [])).toMatchObject({ trace: null, said: ["The heads are trained …"] });
    expect(optionsOf(startOf(diversity))).toEqual({ apart: 0, width: 4, seed: 1 });
  });

  it("says that equal heads did worse, once they were tried", () => {
    const of = (apart: number): Trained => {
      const options = { apart, width: 4, seed: 1 };
      return { options, moments: [...trained(options)] };
    };
    const { said, charts } = diversity.show({ ...startOf(diversity), apart: 3 }, [of(0), of(1e-8)]);
    expect(said.join(" ")).toMatch(/after 1,200 steps they are 0\.\d+ apart\. The loss is .*; that of equal heads is /);
    expect(charts?.map(({ lines }) => lines.map(({ now }) => now))).toEqual([
      [false, true],
      [false, true],
    ]);
  });
});

describe("the address of a page", () => {
  const ranges = [{ name: "heads", choices: [1, 2, 4], start: 2 }];
  it("holds what is chosen, and ignores what does not fit", () => {
    const chosen = {
      values: { guess: 1, heads: 4 },
      cell: "weights_0:2:1",
      answered: true,
      text: "zwei & drei = fünf #?",
    };
    expect(chosenOf(fragmentOf(chosen, ranges), ranges, 3)).toEqual(chosen);
    expect(chosenOf(`#text=${"x".repeat(1000)}`, ranges, 3).text).toHaveLength(mostText);
    expect(fragmentOf(first(ranges), ranges)).toBe("#");
    expect(chosenOf("#guess=7&heads=3&cell=<b>&answered=1", ranges, 3)).toEqual(first(ranges));
    expect(chosenOf("#guess=x&heads=%ff&&=", ranges, 3)).toEqual(first(ranges));
  });
});

describe("the letters of a page", () => {
  it.each<[string, Piece[]]>([
    ["W = W^Q W^K^T.", ["W = W", { above: "Q" }, " W", { above: "K⊤" }, "."]],
    ["x W x^T", ["x W x", { above: "T" }]],
    ["W_i^O of d_k", ["W", { below: "i" }, { above: "O" }, " of d", { below: "k" }]],
    ["w_q_0 and e^-x stay, <b>", ["w_q_0 and e^-x stay, <b>"]],
    ["", []],
  ])("of %s stand where print has them", (text, pieces) => expect(piecesOf(text)).toEqual(pieces));
});

describe("a chart", () => {
  it("has a few powers of ten", () => {
    expect(powers(1e-14, 1)).toEqual([-12, -9, -6, -3, 0]);
    expect(powers(1e-4, 10)).toEqual([-4, -3, -2, -1, 0, 1]);
  });
});
