// From the base64 of a page to its header and its numbers.
import { checkPage } from "./check";
import { BadPage } from "./reader";
import type { Block, Page } from "./page";

export interface Opened {
  page: Page;
  /** The section of numbers, whose offsets are those of Blocks. */
  numbers: ArrayBuffer;
}

export function bytesOfBase64(text: string): Uint8Array {
  let binary: string;
  try {
    binary = atob(text);
  } catch {
    throw new BadPage("The data is not base64: the file was cut or changed.");
  }
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** What was deflated (zlib) and lies in these parts, one behind the other. */
export async function inflated(parts: Uint8Array[]): Promise<Uint8Array> {
  try {
    const stream = new Blob(parts as BlobPart[]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    throw new BadPage("The data cannot be inflated: the file was cut or changed.");
  }
}

/** The page of the text of <script id="data">. */
export async function openPage(base64: string): Promise<Opened> {
  const text = base64.trim();
  if (text === "" || text === "{data}")
    throw new BadPage("There is no data in it: `multihead view` writes pages with data.");
  const all = await inflated([bytesOfBase64(text)]);
  if (all.length < 4) throw new BadPage("The data ends before its header.");
  const length = new DataView(all.buffer, all.byteOffset).getUint32(0, true);
  if (4 + length > all.length) throw new BadPage("The data ends within its header.");
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(all.subarray(4, 4 + length)));
  } catch {
    throw new BadPage("The header of the data is not JSON.");
  }
  const begin = Math.min(all.length, Math.ceil((4 + length) / 8) * 8);
  const numbers = all.slice(begin).buffer as ArrayBuffer;
  return { page: checkPage(header, numbers.byteLength), numbers };
}

export function bytesAt(numbers: ArrayBuffer, block: Block): Uint8Array {
  return new Uint8Array(numbers, block.offset, block.bytes);
}

export function floatsAt(numbers: ArrayBuffer, block: Block): Float32Array {
  return new Float32Array(numbers, block.offset, block.bytes / 4);
}

/** All 65,536 values of float16, made when first needed. */
let halves: Float32Array | null = null;

export function valueOfHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** `count` float16 numbers from the `first` of a block. */
export function halvesAt(numbers: ArrayBuffer, block: Block, first: number, count: number): Float32Array {
  if (halves === null) {
    halves = new Float32Array(65536);
    for (let bits = 0; bits < 65536; bits++) halves[bits] = valueOfHalf(bits);
  }
  const from = new Uint16Array(numbers, block.offset + 2 * first, count);
  const to = new Float32Array(count);
  for (let i = 0; i < count; i++) to[i] = halves[from[i] as number] as number;
  return to;
}
