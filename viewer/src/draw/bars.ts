// Bars: products of a pair by dimension, spectra, small lines through training.
import { s } from "../dom";

/** Bars of one row of numbers around a middle line; `most` is the size that fills half the height. */
export function signedBars(
  values: ArrayLike<number>,
  most: number,
  width: number,
  height: number,
  kind: string,
): SVGGElement {
  const step = width / Math.max(1, values.length);
  const group = s("g", { class: kind });
  group.append(s("line", { x1: 0, x2: width, y1: height / 2, y2: height / 2, class: "axis" }));
  for (let i = 0; i < values.length; i++) {
    const size = most > 0 ? (Math.min(1, Math.abs(values[i] as number) / most) * height) / 2 : 0;
    group.append(
      s("rect", {
        x: (i * step + step * 0.1).toFixed(2),
        width: (step * 0.8).toFixed(2),
        height: Math.max(0.3, size).toFixed(2),
        y: ((values[i] as number) >= 0 ? height / 2 - size : height / 2).toFixed(2),
      }),
    );
  }
  return group;
}

/** Singular values, largest first. */
export function spectrum(values: number[], width: number, height: number, kind: string): SVGSVGElement {
  const most = Math.max(...values, 0) || 1;
  const step = width / Math.max(1, values.length);
  const svg = s("svg", {
    class: `spectrum ${kind}`,
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "img",
    "aria-label": `${values.length} singular values, the largest ${(values[0] ?? 0).toPrecision(3)}`,
  });
  values.forEach((value, i) => {
    const size = Math.max(0.5, (value / most) * height);
    svg.append(
      s("rect", {
        x: (i * step).toFixed(2),
        width: Math.max(0.5, step * 0.8).toFixed(2),
        y: (height - size).toFixed(2),
        height: size.toFixed(2),
      }),
    );
  });
  return svg;
}
