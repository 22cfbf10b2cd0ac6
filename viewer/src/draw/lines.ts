// Small lines of a figure through training.
import { scaleLinear } from "d3-scale";
import { line } from "d3-shape";
import { s } from "../dom";

export interface Course {
  /** A figure for each checkpoint; null where there is none. */
  values: (number | null)[];
  /** The range of the figure, so that lines of different heads can be compared. */
  low: number;
  high: number;
}

/** The points of the line, and where `now` is. */
export function courseOf(
  course: Course,
  now: number,
  width: number,
  height: number,
): { d: string; x: number; y: number | null } {
  const x = scaleLinear([0, Math.max(1, course.values.length - 1)], [2, width - 2]);
  const y = scaleLinear([course.low, course.high > course.low ? course.high : course.low + 1], [height - 2, 2]);
  const d =
    line<number | null>()
      .defined((value) => value !== null)
      .x((_, i) => Math.round(10 * x(i)) / 10)
      .y((value) => Math.round(10 * y(value as number)) / 10)(course.values) ?? "";
  const value = course.values[now] ?? null;
  return { d, x: x(now), y: value === null ? null : y(value) };
}

export function courseSvg(course: Course, now: number, width: number, height: number, label: string): SVGSVGElement {
  const { d, x, y } = courseOf(course, now, width, height);
  return s(
    "svg",
    {
      class: "course",
      viewBox: `0 0 ${width} ${height}`,
      ...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" }),
    },
    s("line", { x1: x, x2: x, y1: 0, y2: height, class: "axis" }),
    s("path", { d, fill: "none" }),
    y !== null && s("circle", { cx: x, cy: y, r: 2.4 }),
  );
}
