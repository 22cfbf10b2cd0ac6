import { deflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { openPage, valueOfHalf } from "../src/decode";
import type { Run } from "../src/page";
import { Weights } from "../src/weights";
import { belowZero, causal, encoder, hostile, pages } from "./pages";
import { half, Numbers, packed } from "./synthetic";

describe("openPage", () => {
  it.each(Object.keys(pages).filter((name) => name !== "long"))("opens %s", async (name) => {
    const made = (pages[name] as () => { page: unknown; data: string })();
    expect((await openPage(made.data)).page).toEqual(made.page);
  });

  const bad = async (data: string) =>
    openPage(data).then(
      () => "opened",
      (error: Error) => error.message,
    );

  it("says in a line what is wrong", async () => {
    const { page } = encoder();
    const numbers = new Numbers();
    expect(await bad("")).toMatch(/no data/);
    expect(await bad("{data}")).toMatch(/no data/);
    expect(await bad("%%%")).toMatch(/base64/);
    expect(await bad("AAAA")).toMatch(/inflated/);
    expect(await bad(encoder().data.slice(0, 400))).toMatch(/inflated/);
    expect(await bad(deflateSync(Buffer.from([255, 0, 0, 0])).toString("base64"))).toMatch(/within its header/);
    expect(await bad(deflateSync(Buffer.from([2, 0, 0, 0, 65, 65])).toString("base64"))).toMatch(/not JSON/);
    expect(await bad(packed({ ...page, schema: 2 }, numbers))).toMatch(/schema 2/);
    expect(await bad(packed({ ...page, runs: [] }, numbers))).toMatch(/no model/);
    expect(await bad(packed(page, numbers))).toMatch(/ends behind the 0 bytes/);
    expect(await bad(packed([], numbers))).toMatch(/not an object/);
    const { page: whole } = belowZero();
    const room = new Numbers();
    room.add(new Uint8Array(100_000));
    const run = structuredClone(whole.runs[0]) as Run;
    const without = (evidence: object) => ({
      ...whole,
      runs: [{ ...run, evidence: { ...run.evidence, ...evidence } }],
    });
    expect(await bad(packed(without({ stats: {} }), room))).toBe("runs[0].evidence.stats.heads is missing.");
    expect(await bad(packed(without({ similar: 1 }), room))).toBe("runs[0].evidence.similar is not an object.");
  });

  it("keeps hostile labels as they are", async () => {
    const opened = await openPage(hostile().data);
    expect(opened.page.runs[0]?.texts[0]?.source.tokens[0]?.label).toBe("<script>window.hacked = 1</script>");
  });
});

describe("weights", () => {
  it("float16 there and back", () => {
    for (const value of [0, 1, -1, 0.5, 65504, 2 ** -24, 2 ** -14, -3.140625, 0.0999755859375]) {
      expect(valueOfHalf(half(value))).toBe(value);
    }
    expect(valueOfHalf(0x7c00)).toBe(Infinity);
    expect(valueOfHalf(0x7e00)).toBeNaN();
  });

  it("of roots are squares that add up to 1", async () => {
    const weights = new Weights(await openPage(encoder().data));
    const { a, keys } = weights.of({ run: 0, text: 0, attention: 1, head: 2 });
    const roots = weights.roots({ run: 0, text: 0, attention: 1, head: 2 }) as Uint8Array;
    expect(a[5]).toBeCloseTo(((roots[5] as number) / 255) ** 2, 6);
    expect(a.subarray(0, keys).reduce((x, y) => x + y, 0)).toBeCloseTo(1, 1);
  });

  it("of products are the softmax of the keys that are seen, also with shared keys", async () => {
    const weights = new Weights(await openPage(causal().data));
    const place = { run: 0, text: 0, attention: 1, head: 4 };
    const { a, keys, queries } = weights.of(place);
    for (let i = 0; i < queries; i++) {
      const row = a.subarray(i * keys, (i + 1) * keys);
      expect(row.reduce((x, y) => x + y, 0)).toBeCloseTo(1, 5);
      expect(row.subarray(i + 1).every((w) => w === 0)).toBe(true);
    }
    const scores = weights.scores(place, 3)?.score as Float32Array;
    expect(scores[4]).toBe(-Infinity);
    const { scale, soft_cap } = weights.maps(place).products ?? { scale: 0, soft_cap: 0 };
    const product = weights.scores(place, 3)?.product[1] as number;
    expect(scores[1]).toBeCloseTo(2 * Math.tanh((product * scale) / 2), 5);
    expect(soft_cap).toBe(2);
    const e = scores.map(Math.exp);
    expect(a[3 * keys + 1]).toBeCloseTo((e[1] as number) / e.reduce((x, y) => x + y, 0), 5);
    const same = weights.keyRows({ ...place, head: 5 }) as Float32Array;
    expect(weights.keyRows(place)).toEqual(same);
    expect(weights.keyRows({ ...place, head: 6 })).not.toEqual(same);
  });

  it("keeps no more than it has room for", async () => {
    const weights = new Weights(await openPage(encoder().data), 200);
    const first = weights.of({ run: 0, text: 0, attention: 0, head: 0 });
    weights.of({ run: 0, text: 0, attention: 0, head: 1 });
    weights.of({ run: 0, text: 0, attention: 0, head: 2 });
    expect(weights.of({ run: 0, text: 0, attention: 0, head: 0 })).not.toBe(first);
  });
});
