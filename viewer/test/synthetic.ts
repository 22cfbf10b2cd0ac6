// Pages made up for tests: weights with patterns that a reader of a screenshot recognises, and evidence.
import { readFileSync } from "node:fs";
import { deflateSync } from "node:zlib";
import type { Attention, Block, Maps, Page, Run, Text, Token, Tokens, Walk, WalkStep } from "../src/page";
import type { HeadStats, Stats } from "../src/reports";

/** Numbers in [0, 1), the same for the same seed. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export class Numbers {
  private parts: Uint8Array[] = [];
  private size = 0;

  add(array: Uint8Array | Float32Array | Uint16Array): Block {
    const bytes = new Uint8Array(array.buffer.slice(array.byteOffset, array.byteOffset + array.byteLength));
    const block = { offset: this.size, bytes: bytes.length };
    const padded = new Uint8Array(Math.ceil(bytes.length / 8) * 8);
    padded.set(bytes);
    this.parts.push(padded);
    this.size += padded.length;
    return block;
  }

  all(): Uint8Array {
    return Buffer.concat(this.parts);
  }
}

export function packed(header: unknown, numbers: Numbers): string {
  const json = Buffer.from(JSON.stringify(header), "utf8");
  const length = Buffer.alloc(4);
  length.writeUInt32LE(json.length);
  const gap = Buffer.alloc((8 - ((4 + json.length) % 8)) % 8);
  return deflateSync(Buffer.concat([length, json, gap, numbers.all()])).toString("base64");
}

export function htmlOf(data: string): string {
  const template = readFileSync(new URL("../../share/viewer/page.html", import.meta.url), "utf8");
  return template.replace("{data}", () => data);
}

/** The nearest float16 as its bits. */
export function half(value: number): number {
  if (value === 0) return 0;
  const sign = value < 0 ? 0x8000 : 0;
  const size = Math.abs(value);
  const exponent = Math.max(-14, Math.floor(Math.log2(size)));
  const fraction = Math.round(size / 2 ** (exponent - 10));
  return sign | (exponent === -14 && fraction < 1024 ? fraction : ((exponent + 15) << 10) + (fraction - 1024));
}

/** Tokens of words split at spaces; "un|happy" is one word of two pieces, "<s>" in `special` a special one. */
export function tokensOf(line: string, special: string[] = []): Tokens {
  const words = line.split(" ");
  let text = "";
  const tokens: Token[] = [];
  let word = 0;
  for (const one of words) {
    if (special.includes(one)) {
      tokens.push({ label: one, token: one, begin: 0, end: 0, word: -1, special: true });
      continue;
    }
    if (text !== "") text += " ";
    for (const piece of one.split("|")) {
      const begin = [...text].length;
      text += piece;
      tokens.push({ label: piece, token: piece, begin, end: [...text].length, word, special: false });
    }
    word += 1;
  }
  return { text, tokens };
}

type Pattern = (i: number, j: number, queries: number, keys: number) => number;

const noise = random(7);
export const patterns: Pattern[] = [
  (i, j) => (j === i - 1 ? 9 : 0.1 + noise()),
  (i, j) => (j === i + 1 ? 9 : 0.2 * noise()),
  (_i, j) => (j === 0 ? 6 : 0.4 * noise() + 0.1),
  (i, j, _q, keys) => Math.exp(-Math.abs(i - j) / 2) + 0.05 * noise() + (j === keys - 1 ? 0.4 : 0),
  () => 0.5 + noise(),
  (i, j, queries, keys) => (j === Math.round((i * (keys - 1)) / Math.max(1, queries - 1)) ? 5 : 0.1 * noise()),
];

export function rootsOf(attention: Attention, queries: number, keys: number, shift = 0): Uint8Array {
  const all = new Uint8Array(attention.heads * queries * keys);
  for (let h = 0; h < attention.heads; h++) {
    const pattern = patterns[(h + attention.layer * 2 + shift) % patterns.length] as Pattern;
    for (let i = 0; i < queries; i++) {
      const row = Array.from({ length: keys }, (_, j) =>
        attention.causal && j > i ? 0 : pattern(i, j, queries, keys),
      );
      const sum = row.reduce((a, b) => a + b, 0) || 1;
      row.forEach((w, j) => (all[(h * queries + i) * keys + j] = Math.round(255 * Math.sqrt(w / sum))));
    }
  }
  return all;
}

export function mapsOf(
  numbers: Numbers,
  of: Attention,
  queries: number,
  keys: number,
  how: "roots" | "products" | "both" | "halves",
  shift = 0,
): Maps {
  const next = random(queries + of.layer);
  const normals = (count: number) =>
    Uint16Array.from({ length: count }, () => half(4 * (next() + next() + next() - 1.5)));
  const products = () => ({
    q: numbers.add(normals(of.heads * queries * of.d_key)),
    k: numbers.add(normals(of.key_heads * keys * of.d_key)),
    scale: 1 / Math.sqrt(of.d_key),
    soft_cap: of.causal ? 2 : null,
    bias:
      of.kind === "encoder"
        ? numbers.add(Float32Array.from({ length: of.heads * (queries + keys - 1) }, () => next() - 0.5))
        : null,
    window: 0,
  });
  return {
    queries,
    keys,
    halves:
      how !== "halves"
        ? null
        : numbers.add(Uint16Array.from({ length: of.heads * queries * keys }, () => half(Math.fround(next() - 0.3)))),
    roots: how === "products" || how === "halves" ? null : numbers.add(rootsOf(of, queries, keys, shift)),
    products: how === "roots" || how === "halves" ? null : products(),
    value_lengths: numbers.add(
      Float32Array.from({ length: of.heads * keys }, (_, j) => (j % keys === 0 ? 0.1 : 0.5 + next())),
    ),
  };
}

export function attentionsOf(
  kind: Attention["kind"],
  layers: number,
  heads: number,
  keyHeads = heads,
  causal = false,
): Attention[] {
  const middle = kind === "cross" ? "cross_attention" : "self_attention";
  const stack = kind === "encoder" ? "encoder" : "decoder";
  return Array.from({ length: layers }, (_, layer) => ({
    name: `${stack}.${layer}.${middle}`,
    kind,
    layer,
    heads,
    key_heads: keyHeads,
    d_key: 16,
    causal,
  }));
}

export function textOf(
  numbers: Numbers,
  attentions: Attention[],
  source: Tokens,
  target: Tokens | null,
  how: "roots" | "products" | "both" | "halves" = "both",
  shift = 0,
): Text {
  const s = source.tokens.length;
  const t = target?.tokens.length ?? 0;
  const maps = attentions.map((of) => {
    const decoder = of.kind === "cross" || (of.kind === "decoder" && target !== null);
    return mapsOf(numbers, of, decoder ? t : s, of.kind !== "cross" && decoder ? t : s, how, shift);
  });
  const predicted = target && {
    text: target.text,
    tokens: [...target.tokens.slice(1), { label: "</s>", token: "</s>", begin: 0, end: 0, word: -1, special: true }],
  };
  return { source, target, predicted, maps, attribution: null, contributions: null, lens: null };
}

export function walkOf(numbers: Numbers, attention: string, rows: number, wide: number, heads: number): Walk {
  const next = random(3);
  const d = wide / heads;
  const steps: WalkStep[] = [];
  const step = (
    name: string,
    formula: string,
    of: number[],
    r: number,
    c: number,
    ra: WalkStep["row_axis"],
    ca: WalkStep["column_axis"],
  ) =>
    steps.push({
      name,
      formula,
      heads: of,
      rows: r,
      columns: c,
      row_axis: ra,
      column_axis: ca,
      numbers: numbers.add(Float32Array.from({ length: r * c }, () => next() * 2 - 1)),
    });
  step("x", "the rows that come in", [], rows, wide, "queries", "numbers");
  for (let h = 0; h < heads; h++) {
    for (const part of ["q", "k", "v"]) {
      step(`w_${part}_${h}`, `learned: columns of w_${part}`, [h], wide, d, "numbers", "numbers");
      step(`b_${part}_${h}`, `learned: columns of b_${part}`, [h], 1, d, "numbers", "numbers");
    }
    for (const part of ["q", "k", "v"])
      step(
        `${part}_${h}`,
        `x w_${part}_${h} + b_${part}_${h}`,
        [h],
        rows,
        d,
        part === "q" ? "queries" : "keys",
        "numbers",
      );
    step(`scores_${h}`, `q_${h} k_${h}^T`, [h], rows, rows, "queries", "keys");
    step(`scaled_${h}`, `0.3536 scores_${h}`, [h], rows, rows, "queries", "keys");
    step(`weights_${h}`, `softmax of the rows of scaled_${h}`, [h], rows, rows, "queries", "keys");
    step(`z_${h}`, `weights_${h} v_${h}`, [h], rows, d, "queries", "numbers");
  }
  step(
    "z",
    `[${Array.from({ length: heads }, (_, h) => `z_${h}`).join(" | ")}], side by side`,
    [],
    rows,
    wide,
    "queries",
    "numbers",
  );
  step("w_o", "learned: rows meet each head's z in turn", [], wide, wide, "numbers", "numbers");
  step("b_o", "learned", [], 1, wide, "numbers", "numbers");
  step("output", "z w_o + b_o", [], rows, wide, "queries", "numbers");
  return { attention, steps };
}

export function statsOf(attentions: Attention[]): Stats {
  const next = random(11);
  const heads: HeadStats[] = [];
  for (const of of attentions) {
    for (let h = 0; h < of.heads; h++) {
      const prev = next();
      heads.push({
        head: `${of.name}.${h}`,
        entropy_share: next(),
        distance: 5 * next(),
        at_offset: { "-1": prev, "+0": 0.1, "+1": 0.2 },
        most_at_offset: { "-1": prev, "+0": 0.1, "+1": 0.1 },
        on_first: next(),
        on_separators: 0.1,
        on_rarest: null,
        induction: null,
        role: prev > 0.9 ? "previous token" : null,
      });
    }
  }
  return { heads };
}

export function runOf(family: Run["family"], attentions: Attention[], texts: Text[], more: Partial<Run> = {}): Run {
  return {
    name: "made up",
    update: null,
    hash: "0123456789abcdef".repeat(4),
    family,
    attentions,
    texts,
    walk: null,
    circuit: null,
    retrieval: null,
    aligners: null,
    evidence: {
      of: "the texts of this page",
      stats: statsOf(attentions),
      similar: null,
      relations: null,
      alignment: null,
      where: null,
      circuits: null,
      importance: null,
      ablation: null,
    },
    ...more,
  };
}

export function pageOf(runs: Run[], mode: Page["mode"] = "one", head?: string): Page {
  const first = (runs[0] as Run).attentions[0] as Attention;
  return {
    schema: 1,
    made: { version: "multihead 0.0", command: "multihead view made-up 'a text'" },
    opens: { run: 0, text: 0, head: head ?? `${first.name}.1`, query: 1, words: "next token, 91 %", by: "role" },
    mode,
    runs,
    live: false,
  };
}
