// Names of heads and how people read them and the texts of tokens.
import type { Attention, Run } from "./page";

export interface HeadName {
  attention: string;
  head: number;
}

/** "encoder.3.self_attention.1" → its attention and number. */
export function splitHead(name: string): HeadName | null {
  const dot = name.lastIndexOf(".");
  if (dot < 0 || !/^\d+$/.test(name.slice(dot + 1))) return null;
  return { attention: name.slice(0, dot), head: Number(name.slice(dot + 1)) };
}

/** Where a head is in a run; null: the run has none of that name. */
export function findHead(run: Run, name: string): { attention: number; head: number } | null {
  const split = splitHead(name);
  if (!split) return null;
  const attention = run.attentions.findIndex((one) => one.name === split.attention);
  const of = run.attentions[attention];
  return of && split.head < of.heads ? { attention, head: split.head } : null;
}

const places = { encoder: "Encoder", decoder: "Decoder", cross: "Cross-attention" };

/** "Encoder 0, head 2" */
export function placeInWords(of: Attention, head: number): string {
  return `${places[of.kind]} ${of.layer}, head ${head}`;
}

export const bandNames = {
  encoder: "Encoder self-attention",
  decoder: "Decoder self-attention",
  cross: "Cross-attention",
};

export function headNames(run: Run): string[] {
  return run.attentions.flatMap((of) => Array.from({ length: of.heads }, (_, head) => `${of.name}.${head}`));
}

export const percent = (share: number): string =>
  `${share !== 0 && Math.abs(share) < 0.095 ? (100 * share).toFixed(1) : Math.round(100 * share)} %`.replace("-", "−");

/** "12,345" */
export const thousands = (count: number): string => String(count).replace(/\B(?=(\d{3})+$)/g, ",");

/** A number in about three figures, with a minus sign. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return value === -Infinity ? "−∞" : value === Infinity ? "∞" : "–";
  const size = Math.abs(value);
  const text =
    size !== 0 && (size < 0.001 || size >= 1e5)
      ? value.toExponential(1)
      : value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
  return text.replaceAll("-", "−");
}

const directions = /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/u;

/** Text whose control characters can be seen: NUL as ␀, marks of direction as their number. Joiners in emoji stay. */
export function visible(text: string): string {
  let to = "";
  const all = [...text];
  all.forEach((c, i) => {
    const code = c.codePointAt(0) as number;
    if (code < 32) to += c === "\n" ? "⏎" : c === "\t" ? "⇥" : String.fromCodePoint(0x2400 + code);
    else if (code === 127) to += "␡";
    else if (
      (code > 127 && code < 160) ||
      directions.test(c) ||
      code === 0xfeff ||
      code === 0x200b ||
      code === 0x2028 ||
      code === 0x2029
    )
      to += hex(code);
    else if ((code === 0x200d || code === 0x200c) && (i === 0 || i === all.length - 1)) to += hex(code);
    else if (code >= 0xd800 && code < 0xe000) to += hex(code);
    else to += c;
  });
  return to;
}

function hex(code: number): string {
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** A token that can be seen, without the mark of a word's beginning, and not longer than `most` characters. */
export function shown(label: string, most = 40): string {
  const bare = /^[▁Ġ]./u.test(label) ? label.slice(1) : label;
  const text = label.trim() === "" ? (label === "" ? "∅" : visible(label).replaceAll(" ", "␣")) : visible(bare);
  const all = [...text];
  return all.length > most ? `${all.slice(0, most - 1).join("")}…` : text;
}
