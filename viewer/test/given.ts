// Made-up reports of a circuit, of retrieval and of heads that align words.
import type { Aligned, AlignedQuery, CircuitEdge, Circuited, LinkScore, Retrieved } from "../src/given";

export const edge = (
  from: string,
  to: string,
  input: CircuitEdge["input"],
  readers: string[],
  score: number,
): CircuitEdge => ({ from, to, input, readers, score, effect: null });

/** Of the translator of pages.ts. */
export const katzeCircuit: Circuited = {
  model: "models/demo",
  precision: "same",
  measure: "log_probability",
  pairs: 7,
  proved_pairs: 4,
  clean: 18.42,
  corrupt: -18.86,
  share: 0.8,
  edges_of_model: 12345,
  edges_of_circuit: 6,
  faithfulness: { mean: 0.88, half: 0.0213 },
  completeness: { mean: 1.0007, half: null },
  pairs_elsewhere: 3,
  faithfulness_elsewhere: { mean: 0.79, half: 0.1 },
  edges: [
    edge("encoder.embeddings", "decoder.1.cross_attention.0.values", "values", ["decoder.1.cross_attention.0"], 0.25),
    edge("decoder.1.cross_attention.0", "decoder.states", "states", ["decoder.states"], 0.5),
    edge(
      "encoder.1.self_attention.2",
      "decoder.1.cross_attention.0.keys",
      "keys",
      ["decoder.1.cross_attention.0"],
      -0.125,
    ),
    edge(
      "encoder.embeddings",
      "encoder.1.self_attention.2.queries",
      "queries",
      ["encoder.1.self_attention.2", "encoder.1.self_attention.3", "encoder.1.self_attention.1"],
      0.01,
    ),
    edge("decoder.1.cross_attention.0", "decoder.1.feed_forward", "feed_forward", ["decoder.1.feed_forward"], 0.02),
    edge("decoder.1.feed_forward", "decoder.states", "states", ["decoder.states"], 0.04),
  ],
  exact: [
    {
      ...edge("decoder.1.cross_attention.0", "decoder.states", "states", ["decoder.states"], 0.5),
      effect: { mean: 0.4, half: 0.05 },
    },
    { ...edge("encoder.embeddings", "decoder.states", "states", [], 0), effect: { mean: 0, half: null } },
  ],
  random: { count: 1000, pairs: 4, circuit: 0.88, mean: 0.0003, most: 0.1967, as_faithful: 2 },
};

/** Of the causal model of pages.ts, whose first layer has two of its nine heads here. */
export const facts: Retrieved = {
  model: "small.gguf",
  precision: "near",
  exact: 0.75,
  log_probability: -1.5,
  options: { answers: "forced", limit: "answer", sinks: 4, window: 64 },
  needles: [{ sentence: "The number of Oslo is 17.", question: "The number of Oslo is", answer: "17" }],
  places: [
    { length: 512, depth: 1, exact: 0.5, log_probability: -2 },
    { length: 512, depth: 0, exact: 1, log_probability: -1 },
    { length: 64, depth: 1, exact: 0.5, log_probability: -2 },
    { length: 64, depth: 0, exact: 1, log_probability: -1 },
  ],
  heads: [
    {
      head: "decoder.0.self_attention.0",
      score: 0.05,
      score_half: null,
      weight: 0.1,
      weight_half: null,
      by_place: [0, 0, 0, 0.2],
    },
    { head: "decoder.0.self_attention.1", score: 0, score_half: 0, weight: 0, weight_half: 0, by_place: [0, 0, 0, 0] },
    {
      head: "decoder.3.self_attention.5",
      score: 0.95,
      score_half: 0.074,
      weight: 0.8,
      weight_half: 0.03,
      by_place: [1, 0.9, 1, 0.9],
    },
  ],
  limited: [
    {
      heads: ["decoder.3.self_attention.3", "decoder.3.self_attention.4", "decoder.3.self_attention.5"],
      fall: 5.35,
      fall_half: 2,
      loss_rise: 0.02,
      loss_rise_half: 0.01,
    },
    { heads: ["decoder.0.self_attention.0"], fall: -0.25, fall_half: null, loss_rise: null, loss_rise_half: null },
  ],
};

const links = (precision: number, recall: number, error_rate: number): LinkScore => ({
  precision,
  recall,
  error_rate,
  accuracy: recall,
  support: 23,
});

const aligner = (head: string, query: AlignedQuery, ...score: [number, number, number]) => ({
  head: `decoder.${head}`,
  query,
  ...links(...score),
});

/** Of the translator of pages.ts, two of whose layers have two heads each here. */
export const katzeAligners: Aligned = {
  model: "models/demo",
  precision: "same",
  sentences: 7,
  targets: "greedy translations",
  alignment: [
    aligner("0.cross_attention.0", "predicts", 0.25, 0.2, 0.78),
    aligner("0.cross_attention.0", "reads", 0.5, 0.4, 0.56),
    aligner("0.cross_attention.1", "predicts", 0, 0, 1),
    aligner("0.cross_attention.1", "reads", 0.02, 0.01, 0.987),
    aligner("0.cross_attention.mean", "predicts", 0.1, 0.1, 0.9),
    aligner("0.cross_attention.mean", "reads", 0.2, 0.2, 0.8),
    aligner("1.cross_attention.0", "predicts", 0.8, 0.8, 0.2),
    aligner("1.cross_attention.0", "reads", 0.3, 0.3, 0.7),
    aligner("1.cross_attention.3", "predicts", 0.9, 0.8, 0.15),
    aligner("1.cross_attention.3", "reads", 0.35, 0.25, 0.71),
    aligner("1.cross_attention.mean", "predicts", 0.9, 0.88, 0.11),
    aligner("1.cross_attention.mean", "reads", 0.4, 0.4, 0.6),
  ],
  alignment_baseline: { offset: -2, ...links(0.55, 0.54, 0.456) },
  chosen: {
    heads: ["decoder.1.cross_attention.3", "decoder.1.cross_attention.0"],
    query: "predicts",
    ...links(0.95, 0.93, 0.06),
  },
};
