// A circuit as a graph: heads and feed-forward layers in their rows, the embeddings at the foot, the last states at the
// top, and a line for each edge and reader.
import { sizeOf, strongestEdges } from "./circuit";
import type { CircuitEdge, Circuited } from "./given";
import type { Run } from "./page";
import { placeOfNode, stacksOf, titleOfNode, type Place } from "./node";

export interface CircuitNode {
  /** "decoder.3.self_attention.5" */
  name: string;
  title: string;
  /** What stands in it: "5", "ff 3" */
  label: string;
  isHead: boolean;
  /** The middle, in columns from the left and in pixels from the top. */
  x: number;
  y: number;
}

/** A row of the graph, all of whose nodes read before those of the row above. */
export interface CircuitRow {
  label: string;
  y: number;
  nodes: CircuitNode[];
}

/** An edge to one of its readers. */
export interface CircuitLine {
  edge: CircuitEdge;
  /** In the order of strongestEdges(). */
  number: number;
  from: CircuitNode;
  to: CircuitNode;
  /** Start, two points that it bends towards, end. */
  points: [Point, Point, Point, Point];
}

export interface Point {
  x: number;
  y: number;
}

export interface CircuitGraph {
  /** From the foot. */
  rows: CircuitRow[];
  lines: CircuitLine[];
  columns: number;
  height: number;
}

export const nodeHeight = 22;
const rowPitch = 48;
/** Between a row of heads and the feed-forward layer over it, which stands in a column of its own. */
const nearPitch = 36;
const edgeOfGraph = nodeHeight;
const longestBend = 2; // columns that a line goes aside where it passes rows

type Level = Place & { names: string[] };

function levelsOf(its: Circuited, run: Run): Level[] {
  const levels = new Map<string, Level>();
  const add = (name: string) => {
    const place = placeOfNode(name);
    if (!place) return;
    const key = `${place.stack} ${place.layer} ${place.part}`;
    const level = levels.get(key) ?? { ...place, names: [] };
    levels.set(key, level);
    if (!level.names.includes(name)) level.names.push(name);
  };
  for (const edge of its.edges) {
    add(edge.from);
    if (edge.input === "states") add(edge.to);
  }
  const stacks = stacksOf(run);
  const order = (level: Level) => stacks.indexOf(level.stack);
  // One after another, but that the first of all is -1 and the last infinite.
  const compare = (a: number, b: number) => (a === b ? 0 : a < b ? -1 : 1);
  return [...levels.values()].sort(
    (a, b) => order(a) - order(b) || compare(a.layer, b.layer) || compare(a.part, b.part),
  );
}

function labelOfRow(level: Level, several: boolean): string {
  if (level.what === "embeddings" && several) return level.stack.slice(0, 3);
  if (level.what !== "head") return "";
  if (!several) return String(level.layer);
  return `${level.part === 1 ? "cross" : level.stack.slice(0, 3)} ${level.layer}`;
}

/** Of a group of heads that share an input only those that write into the circuit have lines. */
export function graphOf(run: Run, its: Circuited): CircuitGraph {
  const heads = Math.max(...run.attentions.map((of) => of.heads));
  const columns = heads + 2;
  const several = stacksOf(run).length > 1;
  const levels = levelsOf(its, run);
  const nodes = new Map<string, CircuitNode & { row: number }>();
  let up = 0;
  const rows = levels.map((level, row): CircuitRow => {
    const before = levels[row - 1];
    if (before) up += (before.what === "feed_forward") === (level.what === "feed_forward") ? rowPitch : nearPitch;
    const made = level.names.map((name): CircuitNode => {
      const number = Number(name.split(".").pop());
      const x = level.what === "head" ? number + 0.5 : level.what === "feed_forward" ? heads + 1 : heads / 2;
      const label =
        level.what === "head" ? String(number) : level.what === "feed_forward" ? `ff ${level.layer}` : level.what;
      const node = { name, title: titleOfNode(run, name), label, isHead: level.what === "head", x, y: up, row };
      nodes.set(name, node);
      return node;
    });
    return { label: labelOfRow(level, several), y: up, nodes: made.sort((a, b) => a.x - b.x) };
  });
  const height = up + 2 * edgeOfGraph;
  for (const row of rows) row.y = height - edgeOfGraph - row.y;
  for (const node of nodes.values()) node.y = height - edgeOfGraph - node.y;
  const lines = strongestEdges(its).flatMap((edge, number) =>
    edge.readers.flatMap((reader): CircuitLine[] => {
      const [from, to] = [nodes.get(edge.from), nodes.get(reader)];
      if (!from || !to) return [];
      const [y1, y2] = [from.y - nodeHeight / 2, to.y + nodeHeight / 2];
      const bend = Math.max((y1 - y2) / 2, 8);
      const left = edge.input === "queries" || edge.input === "keys";
      const aside = (left ? -1 : 1) * Math.min(longestBend, 0.4 * Math.max(0, to.row - from.row - 1));
      // Inputs of one head come in beside each other.
      const beside = { queries: -0.1, keys: 0, values: 0.1, feed_forward: 0, states: 0 }[edge.input];
      const end = to.x + (from.x === to.x ? 0 : beside);
      return [
        {
          edge,
          number,
          from,
          to,
          points: [
            { x: from.x, y: y1 },
            { x: from.x + aside, y: y1 - bend },
            { x: end + aside, y: y2 + bend },
            { x: end, y: y2 },
          ],
        },
      ];
    }),
  );
  return { rows, lines, columns, height };
}

const round = (x: number): string => String(Math.round(100 * x) / 100);

export function pathOf({ points }: CircuitLine): string {
  const [a, b, c, d] = points.map(({ x, y }) => `${round(x)} ${round(y)}`);
  return `M${a}C${b} ${c} ${d}`;
}

/** In pixels, by the score as a share of the strongest. */
export const widthOf = (edge: CircuitEdge, strongest: number): number =>
  Math.round(10 * (1 + (5 * sizeOf(edge)) / (strongest || 1))) / 10;

function at(points: CircuitLine["points"], t: number): Point {
  const [a, b, c, d] = points;
  const u = 1 - t;
  const mix = (of: "x" | "y") => u ** 3 * a[of] + 3 * u * u * t * b[of] + 3 * u * t * t * c[of] + t ** 3 * d[of];
  return { x: mix("x"), y: mix("y") };
}

/** The line that passes nearest to a point, at most `within` pixels away; a column has `column` pixels. */
export function nearestLine(lines: CircuitLine[], point: Point, column: number, within: number): CircuitLine | null {
  let nearest: CircuitLine | null = null;
  let least = within;
  const steps = 32;
  for (const line of lines) {
    for (let i = 0; i <= steps; i++) {
      const { x, y } = at(line.points, i / steps);
      const distance = Math.hypot((x - point.x) * column, y - point.y);
      if (distance < least) [nearest, least] = [line, distance];
    }
  }
  return nearest;
}

/** The node that an arrow key goes to; null: none, or another key. */
export function nodeTo({ rows }: CircuitGraph, name: string, key: string): CircuitNode | null {
  const row = rows.findIndex(({ nodes }) => nodes.some((node) => node.name === name));
  const nodes = rows[row]?.nodes ?? [];
  const place = nodes.findIndex((node) => node.name === name);
  const here = nodes[place];
  if (!here) return null;
  if (key === "ArrowLeft") return nodes[place - 1] ?? null;
  if (key === "ArrowRight") return nodes[place + 1] ?? null;
  if (key === "Home") return rows[0]?.nodes[0] ?? null;
  if (key === "End") return rows[rows.length - 1]?.nodes[0] ?? null;
  if (key !== "ArrowUp" && key !== "ArrowDown") return null;
  const next = rows[row + (key === "ArrowUp" ? 1 : -1)]?.nodes ?? [];
  return [...next].sort((a, b) => Math.abs(a.x - here.x) - Math.abs(b.x - here.x))[0] ?? null;
}
