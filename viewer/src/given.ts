// What `multihead heads circuit --json`, `heads retrieval --json` and `heads alignment --json` print, as the page was
// given it: the fields that it shows, and their readers.
import {
  BadPage,
  count,
  type Figure,
  figure,
  listOf,
  number,
  oneOf,
  orAbsent,
  orNull,
  record,
  text,
  type Reader,
} from "./reader";

export interface Interval {
  mean: Figure;
  /** Half of the 95 % interval; null: it is not known. */
  half: Figure;
}

const interval = record<Interval>({ mean: figure, half: figure });

/** The edges between heads and layers that decide between two answers. */
export interface Circuited {
  /** The model as the report calls it, and how precisely that ran. */
  model: string;
  precision: string;
  measure: "log_probability" | "logit" | "cosine";
  pairs: number;
  /** On so many of them, the first, it was looked for and proved. */
  proved_pairs: number;
  /** What the answer is ahead by after clean and after corrupt texts. */
  clean: Figure;
  corrupt: Figure;
  /** That was to be kept. */
  share: Figure;
  edges_of_model: number;
  edges_of_circuit: number;
  faithfulness: Interval;
  completeness: Interval;
  pairs_elsewhere: number;
  faithfulness_elsewhere: Interval | null;
  /** Of the circuit; of a large one the strongest. */
  edges: CircuitEdge[];
  /** Edges whose effects were measured, of the circuit or not. */
  exact: CircuitEdge[];
  random: RandomCircuits;
}

export interface CircuitEdge {
  /** "decoder.embeddings", "decoder.3.self_attention.5", "decoder.3.feed_forward" */
  from: string;
  /** "decoder.4.self_attention.1.queries", "decoder.4.feed_forward", "decoder.states" */
  to: string;
  input: "queries" | "keys" | "values" | "feed_forward" | "states";
  /** The heads or the layer that are made of that input. */
  readers: string[];
  /** The share of the decision that is expected of it. */
  score: Figure;
  /** The share that was measured; null: it was not. */
  effect: Interval | null;
}

export interface RandomCircuits {
  count: number;
  pairs: number;
  circuit: Figure;
  mean: Figure;
  most: Figure;
  as_faithful: number;
}

const edge = record<CircuitEdge>({
  from: text,
  to: text,
  input: oneOf("queries", "keys", "values", "feed_forward", "states"),
  readers: listOf(text),
  score: figure,
  effect: orAbsent(interval),
});

export const readCircuit: Reader<Circuited> = record<Circuited>({
  model: text,
  precision: text,
  measure: oneOf("log_probability", "logit", "cosine"),
  pairs: count,
  proved_pairs: count,
  clean: figure,
  corrupt: figure,
  share: figure,
  edges_of_model: count,
  edges_of_circuit: count,
  faithfulness: interval,
  completeness: interval,
  pairs_elsewhere: count,
  faithfulness_elsewhere: orNull(interval),
  edges: listOf(edge),
  exact: listOf(edge),
  random: record<RandomCircuits>({
    count,
    pairs: count,
    circuit: figure,
    mean: figure,
    most: figure,
    as_faithful: count,
  }),
});

/** Which heads fetch a fact from far back in a long text. */
export interface Retrieved {
  model: string;
  precision: string;
  /** Shares of the texts whose answer the model says, and log p of the answer. */
  exact: Figure;
  log_probability: Figure;
  options: { answers: string; limit: string; sinks: number; window: number };
  needles: { sentence: string; question: string; answer: string }[];
  places: RetrievalPlace[];
  heads: RetrievalHead[];
  /** Empty: no head was limited. */
  limited: RetrievalNeed[];
}

export interface RetrievalPlace {
  length: number;
  /** 0: at the beginning, 1: right before the question. */
  depth: number;
  exact: Figure;
  log_probability: Figure;
}

export interface RetrievalHead {
  head: string;
  /** The share of the answer's tokens that it copies, and what it gives to them. */
  score: Figure;
  score_half: Figure;
  weight: Figure;
  weight_half: Figure;
  /** The score at each of the places. */
  by_place: Figure[];
}

/** What is lost while heads see the first keys and the last ones alone. */
export interface RetrievalNeed {
  heads: string[];
  fall: Figure;
  fall_half: Figure;
  loss_rise: Figure;
  loss_rise_half: Figure;
}

const retrieval = record<Retrieved>({
  model: text,
  precision: text,
  exact: figure,
  log_probability: figure,
  options: record({ answers: text, limit: text, sinks: count, window: count }),
  needles: listOf(record({ sentence: text, question: text, answer: text })),
  places: listOf(record<RetrievalPlace>({ length: count, depth: number, exact: figure, log_probability: figure })),
  heads: listOf(
    record<RetrievalHead>({
      head: text,
      score: figure,
      score_half: figure,
      weight: figure,
      weight_half: figure,
      by_place: listOf(figure),
    }),
  ),
  limited: listOf(
    record<RetrievalNeed>({
      heads: listOf(text),
      fall: figure,
      fall_half: figure,
      loss_rise: figure,
      loss_rise_half: figure,
    }),
  ),
});

export const readRetrieval: Reader<Retrieved> = (value, where) => {
  const read = retrieval(value, where);
  for (const { head, by_place } of read.heads) {
    if (by_place.length !== read.places.length)
      throw new BadPage(`${where}: ${head} has ${by_place.length} scores for ${read.places.length} places.`);
  }
  return read;
};

/** Of the links that are made, one for each word of a translation at most, against those of a reference. */
export interface LinkScore {
  /** Shares: of the links made those that are right, and of the reference's those that are found. */
  precision: number;
  recall: number;
  /** The alignment error rate, 0 to 1; 0 is best. */
  error_rate: number;
  /** Words of the reference whose source word is one of theirs, and how many words it has. */
  accuracy: number;
  support: number;
}

/** Whose weights stand for a word: those of the row that predicts it, or of the row that has just read it. */
export type AlignedQuery = "predicts" | "reads";

export interface AlignerScore extends LinkScore {
  /** "decoder.1.cross_attention.2", or "decoder.1.cross_attention.mean": the mean of a layer's heads. */
  head: string;
  query: AlignedQuery;
}

/** Which heads of cross-attention align words. */
export interface Aligned {
  model: string;
  precision: string;
  sentences: number;
  /** "given" or "greedy translations" */
  targets: string;
  /** Two for each head, and for the mean of a layer's heads: one for each query. */
  alignment: AlignerScore[];
  /** Of the best fixed offset: source word t + offset for target word t. */
  alignment_baseline: LinkScore & { offset: number };
  /** The heads that were chosen, and what their mean gets; null: the reference is a gold alignment. */
  chosen: (LinkScore & { heads: string[]; query: AlignedQuery }) | null;
}

const linkScore = { precision: number, recall: number, error_rate: number, accuracy: number, support: count };
const alignedQuery = oneOf("predicts", "reads");

export const readAligners: Reader<Aligned> = record<Aligned>({
  model: text,
  precision: text,
  sentences: count,
  targets: text,
  alignment: listOf(record<AlignerScore>({ head: text, query: alignedQuery, ...linkScore })),
  alignment_baseline: record({ offset: number, ...linkScore }),
  chosen: orNull(record({ heads: listOf(text), query: alignedQuery, ...linkScore })),
});

/** The reports that a run was given, each with a view of the same name; null: it was given none of this model. */
export interface Given {
  circuit: Circuited | null;
  retrieval: Retrieved | null;
  aligners: Aligned | null;
}

export const givenNames = ["circuit", "retrieval", "aligners"] as const satisfies (keyof Given)[];

export const readGiven: Reader<Given> = record<Given>({
  circuit: orAbsent(readCircuit),
  retrieval: orAbsent(readRetrieval),
  aligners: orAbsent(readAligners),
});
