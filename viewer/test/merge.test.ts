import { describe, expect, it } from "vitest";
import { change, difference, groupOf, groupsOf, mapOf, sinksOf } from "../src/merge";
import { pooledChange } from "../src/draw/thumbnail";
import { tokensOf } from "./synthetic";

const tokens = tokensOf("[CLS] un|happ|y cat", ["[CLS]"]);
const weights = {
  queries: 5,
  keys: 5,
  signed: false,
  a: Float32Array.from({ length: 25 }, (_, i) => [0.4, 0.1, 0.1, 0.1, 0.3][i % 5] as number),
};

describe("merging", () => {
  it("puts the pieces of words together", () => {
    expect(groupsOf(tokens, false)).toHaveLength(5);
    const groups = groupsOf(tokens, true);
    expect(groups).toEqual([
      { first: 0, last: 0 },
      { first: 1, last: 3 },
      { first: 4, last: 4 },
    ]);
    expect(groupOf(groups, 2)).toBe(1);
    const map = mapOf(weights, groups, groups, { hidden: null, lengths: null });
    expect([map.rows, map.columns]).toEqual([3, 3]);
    expect([...map.values.subarray(3, 6)].map((x) => Math.round(100 * x))).toEqual([40, 30, 30]);
  });

  it("does not put two special tokens together", () => {
    expect(groupsOf(tokensOf("[SEP] [SEP] a", ["[SEP]"]), true)).toHaveLength(3);
  });

  it("leaves sinks out and does not scale the others", () => {
    const hidden = sinksOf(tokens, false);
    expect(hidden).toEqual([true, false, false, false, false]);
    expect(sinksOf(tokensOf("a b"), true)).toEqual([true, false]);
    const groups = groupsOf(tokens, false);
    const map = mapOf(weights, groups, groups, { hidden, lengths: null });
    expect(map.values[0]).toBe(0);
    expect(map.values[4]).toBeCloseTo(0.3, 6);
  });

  it("multiplies by the lengths of values", () => {
    const groups = groupsOf(tokens, true);
    const map = mapOf(weights, groups, groups, { hidden: null, lengths: Float32Array.of(0, 1, 2, 3, 10) });
    expect([...map.values.subarray(0, 3)].map((x) => Math.round(10 * x))).toEqual([0, 6, 30]);
  });
});

describe("comparing", () => {
  it("takes differences of maps of the same shape", () => {
    const a = { rows: 1, columns: 2, values: Float32Array.of(0.75, 0.25) };
    const b = { rows: 1, columns: 2, values: Float32Array.of(0.25, 0.75) };
    expect([...(difference(a, b)?.values ?? [])]).toEqual([0.5, -0.5]);
    expect(difference(a, { rows: 2, columns: 1, values: b.values })).toBeNull();
    expect(change(a.values, b.values, 1)).toBe(0.5);
    expect(change(a.values, a.values, 1)).toBe(0);
  });

  it("keeps what is far from 0 on either side when it is made small", () => {
    const bytes = new Uint8Array(128 * 128).fill(128);
    bytes[0] = 10;
    bytes[128 * 128 - 1] = 250;
    const small = pooledChange(bytes, 128, 128);
    expect([small.rows, small.cells[0], small.cells[1], small.cells[64 * 64 - 1]]).toEqual([64, 10, 128, 250]);
  });
});
