// The pages that `scripts/viewer browser` has made with the tool, and the weights that the tool prints for the same
// text.
import { existsSync, mkdirSync, readFileSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";

/** By head and query: the weights over the keys. */
export type Weights = Record<string, number[][]>;

export interface Made {
  name: string;
  path: string;
  weights: Weights | null;
}

const folder = process.env.VIEWER_PAGES;
if (!folder) throw new Error("VIEWER_PAGES names no folder of pages; run scripts/viewer browser BUILD");
export const shots = process.env.VIEWER_SHOTS ?? join(folder, "../viewer-shots");
mkdirSync(shots, { recursive: true });

function weights_of(path: string): Weights | null {
  const file = path.replace(/\.html$/, ".json");
  if (!existsSync(file)) return null;
  const report = JSON.parse(readFileSync(file, "utf8")) as { text: { weights: Weights } };
  return report.text.weights;
}

function read(file: string): Made {
  const path = join(folder ?? "", file);
  return { name: basename(file, ".html"), path, weights: weights_of(path) };
}

export const all: Made[] = readdirSync(folder)
  .filter((file) => file.endsWith(".html"))
  .sort()
  .map(read);

/** Pages that together have each view; the others differ in their texts alone. */
export const each_view: Made[] = all.filter(({ name }) =>
  ["demo", "minilm", "smollm2", "compare", "time"].includes(name),
);

export function page(name: string): Made {
  const found = all.find((made) => made.name === name);
  if (!found) throw new Error(`no page ${name}.html in ${folder}`);
  return found;
}

/** What the tool says of the texts of a live page, with all heads and without the second layer's cross-attention. */
export interface Told {
  text: string;
  whole: string;
  changed: string;
  /** Of the whole model's translation, what log p loses without these heads, and without each of some others. */
  log_probability_lost: number;
  lost_without: Record<string, number>;
}

export const told = (name: string): Told => JSON.parse(readFileSync(join(folder ?? "", `${name}.told`), "utf8"));

export const has = (name: string): boolean => all.some((made) => made.name === name);
