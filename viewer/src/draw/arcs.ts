// Curves between tokens.
export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

export interface Arc {
  d: string;
  width: number;
  opacity: number;
  to: number;
  /** Of a weight below 0. */
  below: boolean;
}

/** Of one token; more cannot be told apart, and hovering has to fit into a frame. */
export const mostArcs = 160;

const round = (x: number): string => String(Math.round(10 * x) / 10);

/** The keys of the largest weights that can be seen, the smallest of them first so that strong arcs lie on top. */
export function strongest(weights: ArrayLike<number>, least: number, most: number): number[] {
  const keys: number[] = [];
  for (let j = 0; j < weights.length; j++) if (Math.abs(weights[j] as number) >= least) keys.push(j);
  keys.sort((a, b) => Math.abs(weights[b] as number) - Math.abs(weights[a] as number));
  return keys.slice(0, most).reverse();
}

type Point = [x: number, y: number];

/** How high an arc over one line rises. */
export const rise = (distance: number, most: number): number => Math.min(most, 14 + distance * 0.42);

/** The path of a cubic curve from the point `p` to `q`; its ends point at `a` and `b`. */
function cubic(p: Point, a: Point, b: Point, q: Point): string {
  const written = [p, a, b, q].map(([x, y]) => `${round(x)} ${round(y)}`);
  return `M${written[0]}C${written.slice(1).join(" ")}`;
}

/**
 * From the token of the query to that of a key: over the line if they share one, else straight down or up with upright
 * ends.
 */
export function curve(from: Box, to: Box, most: number): string {
  const x1 = from.left + from.width / 2;
  const x2 = to.left + to.width / 2;
  const sameLine = Math.abs(from.top + from.height / 2 - to.top - to.height / 2) < Math.max(from.height, to.height) / 2;
  if (sameLine) {
    const [ya, yb] = [from.top - 1, to.top - 1];
    const y = Math.min(ya, yb);
    if (x1 === x2) {
      const r = Math.min(most, 16);
      return cubic([x1 - 4, y], [x1 - 13, y - r * 1.5], [x1 + 13, y - r * 1.5], [x1 + 4, y]);
    }
    const up = (4 / 3) * rise(Math.abs(x2 - x1), most);
    return cubic([x1, ya], [x1, y - up], [x2, y - up], [x2, yb]);
  }
  const down = to.top > from.top;
  const y1 = down ? from.top + from.height + 1 : from.top - 1;
  const y2 = down ? to.top - 1 : to.top + to.height + 1;
  const middle = (y1 + y2) / 2;
  return cubic([x1, y1], [x1, middle], [x2, middle], [x2, y2]);
}

/**
 * The arcs of one query, of weights from 1 % or a fifth of its largest on: thick and full by weight, of the largest
 * `most` weight a full one.
 */
export function arcsOf(
  from: Box,
  keys: readonly Box[],
  weights: ArrayLike<number>,
  full: number,
  height: number,
  limit = mostArcs,
): Arc[] {
  let most = 0;
  for (let j = 0; j < weights.length; j++) most = Math.max(most, Math.abs(weights[j] as number));
  return strongest(weights, Math.min(0.01 * full, 0.2 * most) || Infinity, limit).map((to) => {
    const t = Math.min(1, Math.abs(weights[to] as number) / full);
    return {
      d: curve(from, keys[to] as Box, height),
      width: Math.round(10 * (0.6 + 5.4 * t)) / 10,
      opacity: Math.round(100 * (0.12 + 0.8 * Math.sqrt(t))) / 100,
      to,
      below: (weights[to] as number) < 0,
    };
  });
}
