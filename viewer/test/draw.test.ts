import { describe, expect, it } from "vitest";
import { arcsOf, curve, strongest } from "../src/draw/arcs";
import { css, diverging, hueOf, inkOn, oklch, ramp, shade, table, type Rgb } from "../src/draw/colours";
import { pixels, pooled, rootsOf, signed } from "../src/draw/thumbnail";

const box = (left: number, top = 100) => ({ left, top, width: 20, height: 20 });
const brightness = ([r, g, b]: Rgb) => 0.2126 * r + 0.7152 * g + 0.0722 * b;

describe("colours", () => {
  it("are those of OKLCH", () => {
    expect(oklch(1, 0, 0)).toEqual([255, 255, 255]);
    expect(oklch(0, 0, 0)).toEqual([0, 0, 0]);
    expect(oklch(0.628, 0.2577, 29.23)[0]).toBeGreaterThan(250);
    expect(css([1, 2, 3])).toBe("rgb(1 2 3)");
  });

  it("fall in brightness all the way in the light and rise in the dark, for every hue", () => {
    for (const head of [0, 1, 2, 3, 4, 5]) {
      for (let i = 1; i <= 16; i++) {
        expect(brightness(ramp(i / 16, hueOf(head), "light"))).toBeLessThan(
          brightness(ramp((i - 1) / 16, hueOf(head), "light")),
        );
        expect(brightness(ramp(i / 16, hueOf(head), "dark"))).toBeGreaterThan(
          brightness(ramp((i - 1) / 16, hueOf(head), "dark")),
        );
      }
    }
  });

  it("of differences meet in the paper's", () => {
    expect(diverging(0, "light")).toEqual(ramp(0, 252, "light"));
    const colours = table("diverging", "light");
    expect(colours[255]).not.toBe(colours[1]);
    expect(table("diverging", "light")).toBe(colours);
  });

  it("have ink that can be read", () => {
    expect(inkOn([255, 255, 255])).toBe("#000");
    expect(inkOn([20, 20, 80])).toBe("#fff");
    expect(shade(0.25)).toBe(0.5);
    expect(shade(-1)).toBe(0);
  });
});

describe("arcs", () => {
  it("are drawn of the strongest, these last", () => {
    expect(strongest([0.1, 0.7, 0.001, 0.2], 0.05, 2)).toEqual([3, 1]);
    const arcs = arcsOf(box(0), [box(0), box(40), box(80)], [0, 0.9, 0.1], 1, 100);
    expect(arcs.map((arc) => arc.to)).toEqual([2, 1]);
    expect(arcs[1]?.width).toBeGreaterThan(arcs[0]?.width as number);
    expect(
      arcsOf(
        box(0),
        Array.from({ length: 9000 }, (_, i) => box(i)),
        new Float32Array(9000).fill(0.5),
        1,
        100,
      ),
    ).toHaveLength(160);
  });

  it("go over a line, to other lines and to themselves", () => {
    expect(curve(box(0), box(100), 150)).toBe("M10 99C10 24.3 110 24.3 110 99");
    expect(curve(box(0), box(100, 10), 150)).toBe("M10 99C10 65 110 65 110 31");
    expect(curve(box(0), box(100, 300), 150)).toMatch(/^M10 121C/);
    expect(curve(box(0), box(0), 150)).toMatch(/^M6 99C/);
  });
});

describe("thumbnails", () => {
  it("keep the largest cell", () => {
    const cells = new Uint8Array(200 * 100);
    cells[199 * 100 + 50] = 200;
    const small = pooled(cells, 200, 100);
    expect([small.rows, small.columns]).toEqual([64, 64]);
    expect(small.cells[63 * 64 + 32]).toBe(200);
    expect(pooled(new Uint8Array(6), 2, 3)).toMatchObject({ rows: 2, columns: 3 });
  });

  it("show roots of weights and signs of differences", () => {
    expect([...rootsOf(Float32Array.of(0, 0.25, 1, 2))]).toEqual([0, 128, 255, 255]);
    expect([...signed(Float32Array.of(0, 1, -1, 0.25))]).toEqual([128, 255, 1, 192]);
    expect([...pixels(Uint8Array.of(1, 0), Uint32Array.of(0xff000000, 0xff0000ff))]).toEqual([
      255, 0, 0, 255, 0, 0, 0, 255,
    ]);
  });
});
