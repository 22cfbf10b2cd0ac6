// The names of what writes into the streams of a model, and how people read them.
import { findHead, placeInWords, shown } from "./names";
import type { Attention, Run } from "./page";

export interface Place {
  stack: string;
  layer: number;
  /** Within its layer: self-attention, cross-attention, feed-forward layer. */
  part: 0 | 1 | 2;
  what: "embeddings" | "head" | "feed_forward" | "states";
}

const parts = { self_attention: 0, cross_attention: 1 } as const;

/** Null: it is no name of a node. */
export function placeOfNode(name: string): Place | null {
  const ends = /^(\w+)\.(embeddings|states)$/.exec(name);
  if (ends) {
    const what = ends[2] as "embeddings" | "states";
    return { stack: ends[1] as string, layer: what === "states" ? Infinity : -1, part: 0, what };
  }
  const forward = /^(\w+)\.(\d+)\.feed_forward$/.exec(name);
  if (forward) return { stack: forward[1] as string, layer: Number(forward[2]), part: 2, what: "feed_forward" };
  const head = /^(\w+)\.(\d+)\.(self_attention|cross_attention)\.\d+$/.exec(name);
  const part = parts[head?.[3] as keyof typeof parts];
  return head ? { stack: head[1] as string, layer: Number(head[2]), part, what: "head" } : null;
}

/** "encoder", "decoder", in the order of a pass. */
export const stacksOf = (run: Run): string[] => [
  ...new Set(run.attentions.map((of) => of.name.split(".")[0] as string)),
];

/** "Decoder 3, head 5", "Feed-forward layer 3" */
export function titleOfNode(run: Run, name: string): string {
  const at = findHead(run, name);
  if (at) return placeInWords(run.attentions[at.attention] as Attention, at.head);
  const place = placeOfNode(name);
  if (!place) return shown(name);
  const of = stacksOf(run).length > 1 ? ` of the ${place.stack}` : "";
  if (place.what === "feed_forward") return `Feed-forward layer ${place.layer}${of}`;
  return place.what === "states" ? "The last states" : `The embeddings${of}`;
}
