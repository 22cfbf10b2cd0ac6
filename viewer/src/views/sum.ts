// The sum that a cell of the walk comes from, in bars and in words; and how a row is split among heads.
import { h, s } from "../dom";
import { signedBars } from "../draw/bars";
import { figure } from "../names";
import type { WalkStep } from "../page";
import { kindOf, type Sum } from "../walk";

export interface Cell {
  step: WalkStep;
  row: number;
  column: number;
}

/** So many terms are written; the bars show all. */
const written = 8;

/** "0.50 · 2.00 + 1.00 · 3.00 = 4.00" */
export function productsInWords({ terms, plus }: Sum): string {
  const few = terms.slice(0, written).map((term) => `${figure(term.left)} · ${figure(term.right)}`);
  const more = terms.length > written ? [`… (${terms.length - written} more)`] : [];
  const last = plus === null ? [] : [figure(plus)];
  const total = terms.reduce((sum, term) => sum + term.product, 0) + (plus ?? 0);
  return `${[...few, ...more, ...last].join(" + ")} = ${figure(total)}`;
}

/** A softmax: "1.00 / (1.00 + 3.00) = 0.25" */
export function shareInWords({ terms }: Sum, column: number): string {
  const few = terms.slice(0, written).map((term) => figure(term.product));
  const more = terms.length > written ? ["…"] : [];
  const total = terms.reduce((sum, term) => sum + term.product, 0);
  const own = terms[column]?.product ?? 0;
  return `${figure(own)} / (${[...few, ...more].join(" + ")}) = ${figure(own / total)}`;
}

function barsOf(products: number[], kind: string): SVGSVGElement {
  const most = Math.max(...products.map(Math.abs));
  const width = Math.min(420, Math.max(160, 26 * products.length));
  const label = `${products.length} terms`;
  return s(
    "svg",
    { class: "terms", viewBox: `0 0 ${width} 70`, width, height: 70, role: "img", "aria-label": label },
    signedBars(products, most, width, 70, `of-${kind}`),
  );
}

export function sumOf({ step, row, column }: Cell, sum: Sum): Element[] {
  const kind = kindOf(step.name);
  const cell = h("span", { class: kind }, `${step.name}[${row}, ${column}]`);
  const parts: Element[] = [h("h2", {}, cell, ` = ${figure(sum.value)}`), h("p", { class: "quiet" }, `${sum.how}.`)];
  if (sum.terms.length === 0) return parts;
  const soft = step.formula.startsWith("softmax");
  const words = soft ? shareInWords(sum, column) : productsInWords(sum);
  const bars = barsOf(
    sum.terms.map((term) => term.product),
    kind,
  );
  return [...parts, bars, h("p", { class: "numbers" }, words)];
}

/** The width of a row: one piece for all heads, or a piece each with the head's own filled. */
export function splitBar(heads: number, own: number, split: boolean): SVGSVGElement {
  const svg = s("svg", { class: "split", viewBox: "0 0 240 14", width: 240, height: 14, "aria-hidden": "true" });
  for (let i = 0; i < (split ? heads : 1); i++) {
    const width = 240 / (split ? heads : 1);
    svg.append(
      s("rect", {
        x: i * width + 0.5,
        y: 0.5,
        width: width - (split ? 2 : 1),
        height: 13,
        rx: 2,
        class: !split || i === own ? "own" : "other",
      }),
    );
  }
  return svg;
}
