// Lines through a training on a logarithmic scale, with a place of its own for 0.
import { scaleLinear, scaleLog } from "d3-scale";
import { line } from "d3-shape";
import { s } from "../dom";
import { figure } from "../names";
import type { Chart } from "./play";

const size = { width: 460, height: 230, left: 58, right: 12, top: 10, bottom: 26, zero: 16 };

/** Powers of ten between two numbers, at most seven. */
export function powers(low: number, high: number): number[] {
  const [from, to] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
  const by = Math.max(1, Math.ceil((to - from) / 6));
  return Array.from({ length: Math.floor((to - from) / by) + 1 }, (_, i) => to - i * by).reverse();
}

const raised = (power: number): SVGElement =>
  s("tspan", {}, "10", s("tspan", { dy: "-0.45em", "font-size": "0.72em" }, String(power).replace("-", "−")));

export function chartSvg({ title, lines, low, high, at }: Chart): SVGSVGElement {
  const { width, height, left, right, top, bottom, zero } = size;
  const last = Math.max(1, ...lines.flatMap(({ points }) => points.map(([x]) => x)));
  const x = scaleLinear([0, last], [left, width - right]);
  const log = scaleLog([low, high], [height - bottom - zero, top]);
  const y = (value: number) => (value > 0 ? log(Math.min(high, Math.max(low, value))) : height - bottom);
  const path = line<readonly [number, number]>()
    .x(([step]) => Math.round(10 * x(step)) / 10)
    .y(([, value]) => Math.round(10 * y(value)) / 10);
  const now = lines.find((one) => one.now)?.points.at(-1);
  const label = `${title}${now ? `: ${figure(now[1])} at step ${now[0]}` : ""}`;
  return s(
    "svg",
    { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    ...powers(low, high).flatMap((power) => [
      s("line", { x1: left, x2: width - right, y1: y(10 ** power), y2: y(10 ** power), class: "axis" }),
      s("text", { x: left - 6, y: y(10 ** power) + 4, "text-anchor": "end" }, raised(power)),
    ]),
    s("line", { x1: left, x2: width - right, y1: y(0), y2: y(0), class: "axis" }),
    s("text", { x: left - 6, y: y(0) + 4, "text-anchor": "end" }, "0"),
    s("line", { x1: x(at), x2: x(at), y1: top, y2: height - bottom, class: "at" }),
    s("text", { x: left, y: height - 6 }, "step 0"),
    s("text", { x: width - right, y: height - 6, "text-anchor": "end" }, String(last)),
    ...lines.map(({ name, points, now: own }) =>
      s("path", { d: path(points) ?? "", class: own ? "course now" : "course" }, s("title", {}, name)),
    ),
  );
}
