// The data of a page, as `multihead view` writes it (docs/file-formats.md, "The data of a page"; in C++
// multihead/heads/page/).
//
// The element <script id="data" type="text/plain"> holds base64 of deflated bytes (zlib):
//
//   4 bytes           n, the length of the header, little-endian
//   n bytes           the header, JSON in UTF-8: a Page
//   zeros             up to the next multiple of 8
//   the numbers       little-endian; a Block says where
//
// decode.ts reads it and checks every field, so that a page of another schema says so in one line.

import type { Attributed } from "./attributed";
import type { Contributed } from "./contributed";
import type { Lensed } from "./lensed";
import type { None } from "./none";
import type { Given } from "./given";
import type { Evidence } from "./reports";

export const SCHEMA = 1;

/** Numbers at `offset` bytes from the beginning of the section of numbers. */
export interface Block {
  offset: number;
  bytes: number;
}

export interface Page {
  schema: number;
  made: Made;
  /** What the first screen shows before anything is chosen. */
  opens: Opens;
  /** How the runs belong together: one model; two models on the same text; checkpoints of one training, in order. */
  mode: "one" | "compare" | "time";
  runs: Run[];
  /** Whether the model is in the page, so that it answers (live/). No field of the data: the page's elements say it. */
  live: boolean;
}

export interface Made {
  version: string;
  command: string;
}

export interface Opens {
  run: number;
  text: number;
  head: string;
  /** The token in focus: a query of that head. */
  query: number;
  /** The head in words, "article → noun, 97 %"; the page writes its place, "Encoder 0, head 2", in front. */
  words: string;
  /** Which evidence these words rest on. */
  by: "relation" | "alignment" | "role" | "given";
}

export interface Run extends Given {
  /** "minilm", or of a checkpoint "update 500". */
  name: string;
  /** Of a checkpoint its updates; otherwise null. */
  update: number | null;
  /** SHA-256 of the weights, hexadecimal. */
  hash: string;
  family: "encoder" | "causal" | "translator";
  attentions: Attention[];
  texts: Text[];
  evidence: Evidence;
  walk: Walk | null;
}

export interface Attention {
  /** "encoder.3.self_attention" */
  name: string;
  kind: "encoder" | "decoder" | "cross";
  layer: number;
  heads: number;
  /** Heads that have keys of their own: fewer than `heads` with grouped queries. */
  key_heads: number;
  d_key: number;
  /** Whether query i sees keys 0 to i alone. */
  causal: boolean;
}

export interface Text {
  source: Tokens;
  /** What a translator's decoder reads, its start token first; otherwise null. */
  target: Tokens | null;
  /** What each of its rows predicts, the end token last: the queries of cross-attention; otherwise null. */
  predicted: Tokens | null;
  /** By attention, in the order of Run.attentions. */
  maps: Maps[];
  /** Null: it was left out. */
  attribution: Attributed | None | null;
  contributions: Contributed | None | null;
  lens: Lensed | None | null;
}

export interface Tokens {
  text: string;
  tokens: Token[];
}

export interface Token {
  /** As people read it. */
  label: string;
  /** As in the vocabulary. */
  token: string;
  /** Characters (code points) of Tokens.text, [begin, end); both 0 of special tokens. */
  begin: number;
  end: number;
  /** The number of the word that it is a piece of, from 0; -1: it belongs to none. */
  word: number;
  special: boolean;
}

/** The weights of all heads of one attention on one text, [heads, queries, keys]. */
export interface Maps {
  queries: number;
  keys: number;
  /** uint8 [heads, queries, keys]: a = (byte / 255)². Null: in `halves`, or computed from `products`. */
  roots: Block | null;
  /** float16 [heads, queries, keys]: of heads whose weights may be below 0 or above 1 (differential, talking). */
  halves: Block | null;
  products: Products | null;
  /** float32 [heads, keys]: the length of v_j W^O, with which a head adds key j when a = 1. Null: a head has none. */
  value_lengths: Block | null;
}

/**
 * score = scale q·k + bias, or with a soft cap: cap tanh(scale q·k / cap) + bias; a = softmax over the keys that the
 * query may see.
 */
export interface Products {
  /** float16 [heads, queries, d_key] and [key_heads, keys, d_key]. Head h reads keys floor(h key_heads / heads). */
  q: Block;
  k: Block;
  scale: number;
  /** Null, or not there: there is none. */
  soft_cap: number | null;
  /** float32 [heads, queries + keys - 1]: by j - i + queries - 1. Null: there is none. */
  bias: Block | null;
  /** How many keys to the left a query sees at most, itself too; 0: all. */
  window: number;
}

/** One attention on the first text, step by step: what `multihead trace` prints. */
export interface Walk {
  attention: string;
  steps: WalkStep[];
}

export interface WalkStep {
  /** "q_0" */
  name: string;
  /** "x w_q_0 + b_q_0": of names of steps and of parameters, which are steps too. */
  formula: string;
  /** The heads that it belongs to; empty: all. */
  heads: number[];
  rows: number;
  columns: number;
  row_axis: Axis;
  column_axis: Axis;
  /** float32 [rows, columns] */
  numbers: Block;
}

export type Axis = "numbers" | "queries" | "keys";
