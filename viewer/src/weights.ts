// The weights of heads, made when they are asked for and kept while there is room.
import { bytesAt, floatsAt, halvesAt, type Opened } from "./decode";
import type { Attention, Maps, Run } from "./page";

export interface HeadWeights {
  queries: number;
  keys: number;
  /** [queries, keys] */
  a: Float32Array;
  /** Whether weights may be below 0. */
  signed: boolean;
}

export interface Place {
  run: number;
  text: number;
  attention: number;
  head: number;
}

const squares = Float32Array.from({ length: 256 }, (_, byte) => (byte / 255) ** 2);

/** The keys that a query may see: [first, last]. */
export function seen(query: number, keys: number, causal: boolean, window: number): [number, number] {
  const last = causal ? Math.min(query, keys - 1) : keys - 1;
  return [window > 0 ? Math.max(0, query - window + 1) : 0, last];
}

/** cap tanh(score / cap), as it is without a cap. */
export function softlyCapped(score: number, cap: number | null): number {
  return cap === null ? score : cap * Math.tanh(score / cap);
}

/** Scores of a query before the softmax, of keys that it may not see -Infinity; bias and product apart. */
export interface Scores {
  product: Float32Array;
  bias: Float32Array | null;
  score: Float32Array;
}

export class Weights {
  private kept = new Map<string, HeadWeights>();
  private cells = 0;

  constructor(
    readonly opened: Opened,
    private readonly room = 24e6,
  ) {}

  run(place: Place): Run {
    return this.opened.page.runs[place.run] as Run;
  }

  attention(place: Place): Attention {
    return this.run(place).attentions[place.attention] as Attention;
  }

  maps(place: Place): Maps {
    return (this.run(place).texts[place.text] as Run["texts"][number]).maps[place.attention] as Maps;
  }

  /** √a in 255ths, [queries, keys], if the page has them. */
  roots(place: Place): Uint8Array | null {
    const maps = this.maps(place);
    const size = maps.queries * maps.keys;
    return maps.roots && bytesAt(this.opened.numbers, maps.roots).subarray(place.head * size, (place.head + 1) * size);
  }

  /** ‖v_j W^O‖ of each key, if the head has them. */
  valueLengths(place: Place): Float32Array | null {
    const maps = this.maps(place);
    if (!maps.value_lengths) return null;
    return floatsAt(this.opened.numbers, maps.value_lengths).subarray(
      place.head * maps.keys,
      (place.head + 1) * maps.keys,
    );
  }

  of(place: Place): HeadWeights {
    const key = `${place.run} ${place.text} ${place.attention} ${place.head}`;
    const before = this.kept.get(key);
    if (before) {
      this.kept.delete(key);
      this.kept.set(key, before);
      return before;
    }
    const made = this.make(place);
    this.kept.set(key, made);
    this.cells += made.a.length;
    for (const [oldest, old] of this.kept) {
      if (this.cells <= this.room || oldest === key) break;
      this.kept.delete(oldest);
      this.cells -= old.a.length;
    }
    return made;
  }

  private make(place: Place): HeadWeights {
    const { queries, keys } = this.maps(place);
    const a = new Float32Array(queries * keys);
    const roots = this.roots(place);
    if (roots) {
      for (let i = 0; i < roots.length; i++) a[i] = squares[roots[i] as number] as number;
      return { queries, keys, a, signed: false };
    }
    const maps = this.maps(place);
    if (maps.halves) {
      const kept = halvesAt(this.opened.numbers, maps.halves, place.head * a.length, a.length);
      return { queries, keys, a: kept, signed: kept.some((weight) => weight < 0) };
    }
    const products = maps.products as NonNullable<Maps["products"]>;
    const of = this.attention(place);
    const q = this.queryRows(place) as Float32Array;
    const k = transposed(this.keyRows(place) as Float32Array, keys, of.d_key);
    const bias = this.biasOf(place);
    for (let i = 0; i < queries; i++) {
      const row = a.subarray(i * keys, (i + 1) * keys);
      const [first, last] = seen(i, keys, of.causal, products.window);
      addProducts(row, q.subarray(i * of.d_key, (i + 1) * of.d_key), k, keys, products.scale, first, last);
      if (products.soft_cap !== null)
        for (let j = first; j <= last; j++) row[j] = softlyCapped(row[j] as number, products.soft_cap);
      if (bias) for (let j = first; j <= last; j++) row[j] = (row[j] as number) + (bias[j - i + queries - 1] as number);
      softmax(row, first, last);
    }
    return { queries, keys, a, signed: false };
  }

  /** Rows of queries of the head, [queries, d_key]. */
  queryRows(place: Place): Float32Array | null {
    const maps = this.maps(place);
    const d = this.attention(place).d_key;
    const size = maps.queries * d;
    return maps.products && halvesAt(this.opened.numbers, maps.products.q, place.head * size, size);
  }

  /** Rows of keys that the head reads, [keys, d_key]. */
  keyRows(place: Place): Float32Array | null {
    const maps = this.maps(place);
    const of = this.attention(place);
    const size = maps.keys * of.d_key;
    const keyHead = Math.floor((place.head * of.key_heads) / of.heads);
    return maps.products && halvesAt(this.opened.numbers, maps.products.k, keyHead * size, size);
  }

  private biasOf(place: Place): Float32Array | null {
    const maps = this.maps(place);
    if (!maps.products?.bias) return null;
    const size = maps.queries + maps.keys - 1;
    return floatsAt(this.opened.numbers, maps.products.bias).subarray(place.head * size, (place.head + 1) * size);
  }

  /** The scores of one query, for the bars of q·k; null without products. */
  scores(place: Place, query: number): Scores | null {
    const maps = this.maps(place);
    const q = this.queryRows(place);
    const k = this.keyRows(place);
    if (!maps.products || !q || !k) return null;
    const of = this.attention(place);
    const bias = this.biasOf(place);
    const [first, last] = seen(query, maps.keys, of.causal, maps.products.window);
    const product = new Float32Array(maps.keys).fill(-Infinity);
    const score = new Float32Array(maps.keys).fill(-Infinity);
    const added = bias && new Float32Array(maps.keys);
    for (let j = first; j <= last; j++) {
      let sum = 0;
      for (let d = 0; d < of.d_key; d++) sum += (q[query * of.d_key + d] as number) * (k[j * of.d_key + d] as number);
      product[j] = sum;
      const b = bias ? (bias[j - query + maps.queries - 1] as number) : 0;
      if (added) added[j] = b;
      score[j] = softlyCapped(sum * maps.products.scale, maps.products.soft_cap) + b;
    }
    return { product, bias: added, score };
  }
}

/**
 * row[j] += scale q·k_j, of keys as [d_key, keys]: four numbers of the query in one pass over the row, which takes most
 * of the time.
 */
function addProducts(
  row: Float32Array,
  q: Float32Array,
  k: Float32Array,
  keys: number,
  scale: number,
  first: number,
  last: number,
): void {
  let d = 0;
  for (; d + 4 <= q.length; d += 4) {
    const [a, b, c, e] = [
      (q[d] as number) * scale,
      (q[d + 1] as number) * scale,
      (q[d + 2] as number) * scale,
      (q[d + 3] as number) * scale,
    ];
    const ka = k.subarray(d * keys, (d + 1) * keys);
    const kb = k.subarray((d + 1) * keys, (d + 2) * keys);
    const kc = k.subarray((d + 2) * keys, (d + 3) * keys);
    const ke = k.subarray((d + 3) * keys, (d + 4) * keys);
    for (let j = first; j <= last; j++) {
      row[j] =
        (row[j] as number) +
        a * (ka[j] as number) +
        b * (kb[j] as number) +
        c * (kc[j] as number) +
        e * (ke[j] as number);
    }
  }
  for (; d < q.length; d++) {
    const a = (q[d] as number) * scale;
    for (let j = first; j <= last; j++) row[j] = (row[j] as number) + a * (k[d * keys + j] as number);
  }
}

/** [rows, columns] as [columns, rows]. */
export function transposed(from: Float32Array, rows: number, columns: number): Float32Array {
  const to = new Float32Array(from.length);
  for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) to[j * rows + i] = from[i * columns + j] as number;
  return to;
}

/** The softmax of row[first..last], in place. */
export function softmax(row: Float32Array, first: number, last: number): void {
  let largest = -Infinity;
  for (let j = first; j <= last; j++) largest = Math.max(largest, row[j] as number);
  let sum = 0;
  for (let j = first; j <= last; j++) {
    const e = Math.exp((row[j] as number) - largest);
    row[j] = e;
    sum += e;
  }
  for (let j = first; j <= last; j++) row[j] = (row[j] as number) / sum;
}
