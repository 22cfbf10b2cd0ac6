import { describe, expect, it } from "vitest";
import { chaptersOf, headsOf, kindOf, partsOf, Steps } from "../src/walk";
import type { Walk, WalkStep } from "../src/page";
import { productsInWords, shareInWords } from "../src/views/sum";
import { Numbers, walkOf } from "./synthetic";

const numbers = new Numbers();
const walk = walkOf(numbers, "encoder.0.self_attention", 5, 8, 2);

describe("the walk", () => {
  it("has ten chapters for each head", () => {
    expect(headsOf(walk)).toEqual([0, 1]);
    const chapters = chaptersOf(walk, 1);
    expect(chapters.map((one) => one.steps.map((step) => step.name))).toEqual([
      ["x"],
      ["q_1"],
      ["k_1"],
      ["v_1"],
      ["scores_1"],
      ["scaled_1"],
      ["weights_1"],
      ["z_1"],
      ["z"],
      ["output"],
    ]);
    expect(chapters.map((one) => one.split)).toEqual([false, true, true, true, true, true, true, true, false, false]);
  });

  it("has capped scores among the scaled ones", () => {
    const step = (name: string, formula: string): WalkStep => ({
      ...(walk.steps[0] as WalkStep),
      name,
      formula,
      heads: [1],
    });
    const steps = [
      step("scaled_1", "0.25 scores_1"),
      step("capped_1", "50 tanh(scaled_1 / 50)"),
      step("biased_1", "capped_1 + bias_1"),
    ];
    const [chapter] = chaptersOf({ ...walk, steps }, 1);
    expect(chapter?.title).toBe("Scaled scores");
    expect(chapter?.steps.map((one) => one.name)).toEqual(["scaled_1", "capped_1", "biased_1"]);
  });

  it("names symbols of formulas", () => {
    expect(partsOf("q_0 k_0^T", walk).map((part) => [part.text, part.step?.name, part.turned])).toEqual([
      ["q_0", "q_0", false],
      [" ", undefined, false],
      ["k_0^T", "k_0", true],
    ]);
    expect(
      partsOf("[z_0 | z_1], side by side", walk)
        .filter((part) => part.step)
        .map((part) => part.text),
    ).toEqual(["z_0", "z_1"]);
    expect(["w_q_0", "k_3_turned", "v_1", "x", "scores_0", "b_o"].map(kindOf)).toEqual(["q", "k", "v", "x", "x", "x"]);
  });

  it("adds up cells", () => {
    const own = new Numbers();
    const step = (name: string, formula: string, rows: number, columns: number, values: number[]): WalkStep => ({
      name,
      formula,
      heads: [],
      rows,
      columns,
      row_axis: "queries",
      column_axis: "numbers",
      numbers: own.add(Float32Array.from(values)),
    });
    const made: Walk = {
      attention: "a",
      steps: [
        step("x", "the rows that come in", 2, 2, [1, 2, 3, 4]),
        step("w", "learned", 2, 3, [1, 2, 3, 4, 5, 6]),
        step("b", "learned", 1, 3, [10, 20, 30]),
        step("q", "x w + b", 2, 3, [19, 32, 45, 29, 46, 63]),
        step("s", "q q^T", 2, 2, [1, 2, 3, 4]),
        step("t", "0.5 s", 2, 2, [0.5, 1, 1.5, 2]),
        step("m", "t, -infinity where the mask hides the key", 2, 2, [0.5, -Infinity, 1.5, 2]),
        step("p", "softmax of the rows of m", 2, 2, [1, 0, 0.3775, 0.6225]),
        step("y", "[x | q], side by side", 2, 5, [1, 2, 19, 32, 45, 3, 4, 29, 46, 63]),
        step("u", "s + t", 2, 2, [1.5, 3, 4.5, 6]),
        step("c", "1.5 tanh(s / 1.5)", 2, 2, [0.8742, 1.3055, 1.446, 1.4857]),
        step("d", "c + t", 2, 2, [1.3742, 2.3055, 2.946, 3.4857]),
      ],
    };
    const steps = new Steps(made, new Uint8Array(own.all()).buffer);
    const of = (name: string, row: number, column: number) => steps.sum(steps.get(name) as WalkStep, row, column);
    expect(of("q", 1, 2)).toMatchObject({
      value: 63,
      plus: 30,
      terms: [
        { left: 3, right: 3, product: 9 },
        { left: 4, right: 6, product: 24 },
      ],
    });
    expect(of("q", 1, 2).factors.map((one) => [one.step.name, one.row, one.column])).toEqual([
      ["x", 1, null],
      ["w", null, 2],
      ["b", 0, 2],
    ]);
    expect(of("s", 0, 1).terms[2]).toEqual({ left: 45, right: 63, product: 2835 });
    expect(of("t", 1, 0)).toMatchObject({ terms: [{ left: 0.5, right: 3, product: 1.5 }] });
    expect(of("p", 1, 1).terms.map((one) => one.left)).toEqual([1.5, 2]);
    expect(of("y", 1, 3)).toMatchObject({ how: "the same number as in q", factors: [{ row: 1, column: 1 }] });
    expect(of("u", 0, 0)).toMatchObject({ plus: 0.5 });
    expect(of("m", 0, 1).how).toMatch(/mask/);
    const capped = of("c", 1, 0);
    expect(capped.how).toBe("the cap, times tanh of 3.00 / 1.50");
    expect(capped.terms).toEqual([{ left: 1.5, right: Math.tanh(2), product: 1.5 * Math.tanh(2) }]);
    expect(capped.terms[0]?.product).toBeCloseTo(capped.value, 3);
    expect(capped.factors).toMatchObject([{ row: 1, column: 0, step: { name: "s" } }]);
    expect(of("d", 0, 1)).toMatchObject({ how: "two numbers, added", plus: 1 });
    expect(
      partsOf("1.5 tanh(s / 1.5)", made)
        .filter((part) => part.step)
        .map((part) => part.text),
    ).toEqual(["s"]);
    expect(productsInWords(capped)).toBe("1.50 · 0.964 = 1.45");
    expect(of("x", 0, 0).terms).toEqual([]);
  });

  it("puts sums in words, of many terms the first eight", () => {
    const term = (left: number, right: number) => ({ left, right, product: left * right });
    const sum = { how: "", value: 4, terms: [term(0.5, 2), term(1, 3)], plus: null, factors: [] };
    expect(productsInWords(sum)).toBe("0.500 · 2.00 + 1.00 · 3.00 = 4.00");
    expect(productsInWords({ ...sum, plus: -1 })).toBe("0.500 · 2.00 + 1.00 · 3.00 + −1.00 = 3.00");
    expect(shareInWords(sum, 0)).toBe("1.00 / (1.00 + 3.00) = 0.250");
    const many = { ...sum, terms: Array.from({ length: 10 }, () => term(1, 1)), plus: 2 };
    expect(productsInWords(many)).toMatch(/^(1\.00 · 1\.00 \+ ){8}… \(2 more\) \+ 2\.00 = 12\.0$/);
    expect(shareInWords(many, 9)).toMatch(/^1\.00 \/ \((1\.00 \+ ){8}…\) = 0\.100$/);
  });
});
