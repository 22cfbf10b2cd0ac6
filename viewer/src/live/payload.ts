// The model inside the page: what the elements of a live page hold (docs/file-formats.md, "A live page").
import { BadPage, count, type Figure, fields, figure, listOf, oneOf, type Reader, record, text } from "../reader";

/** A file of the model, or the library itself, deflated and cut into elements of base64. */
export interface LiveFile {
  name: string;
  /** As it is when it has been inflated. */
  bytes: number;
  /** How many elements hold it. */
  parts: number;
}

/** How the weights in the page differ from those in the file. */
export interface LiveWeights {
  as: "file" | "float16" | "int8";
  /** The largest difference of a logit, as a share of the range of the logits; null: there is none, or no logits. */
  difference: Figure;
  /** The least cosine of sentence vectors; null: there is none. */
  cosine: Figure;
  /** On how many texts they were compared. */
  texts: number;
}

export interface Payload {
  name: string;
  /** The library first, then the model's files. */
  files: LiveFile[];
  weights: LiveWeights;
  /** What the calls `page` are given: the settings of `multihead view`. */
  page: object;
  run: object;
}

export const LIVE_SCHEMA = 1;

const settings: Reader<object> = (value, where) => fields(value, where);

const payload = record<Payload>({
  name: text,
  files: listOf(record<LiveFile>({ name: text, bytes: count, parts: count })),
  weights: record<LiveWeights>({
    as: oneOf("file", "float16", "int8"),
    difference: figure,
    cosine: figure,
    texts: count,
  }),
  page: settings,
  run: settings,
});

/** What <script id="live"> says. */
export function readPayload(json: string): Payload {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new BadPage("What the page says of its model is not JSON: the file was cut or changed.");
  }
  const { schema } = fields(value, "live");
  if (schema !== LIVE_SCHEMA)
    throw new BadPage(
      `The model in the page has schema ${JSON.stringify(schema) ?? "none"}, and this page reads ${LIVE_SCHEMA}.`,
    );
  const read = payload(value, "live");
  if (read.files.length < 2) throw new BadPage("live.files: the page holds no model.");
  return read;
}
