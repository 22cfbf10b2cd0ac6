// What the verbs of `multihead heads` print as JSON (docs/file-formats.md): the fields that the page shows, and
// their readers.
import { count, type Figure, figure, listOf, oneOf, orAbsent, orNull, record, tableOf, text } from "./reader";

/** `heads stats` */
export interface Stats {
  heads: HeadStats[];
}

export interface HeadStats {
  head: string;
  entropy_share: Figure;
  distance: Figure;
  /** By offset, "-1" the token before: the mean weight, and the share of queries whose largest weight is there. */
  at_offset: { [offset: string]: Figure };
  most_at_offset: { [offset: string]: Figure };
  on_first: Figure;
  on_separators: Figure;
  on_rarest: Figure;
  /** Null: the model was not run on repeated tokens. */
  induction: Figure;
  role: string | null;
}

const stats = record<Stats>({
  heads: listOf(
    record<HeadStats>({
      head: text,
      entropy_share: figure,
      distance: figure,
      at_offset: tableOf(figure),
      most_at_offset: tableOf(figure),
      on_first: figure,
      on_separators: figure,
      on_rarest: figure,
      induction: orAbsent(figure),
      role: orNull(text),
    }),
  ),
});

/** `heads relations`: all heads on all sentences, and the best heads, chosen on half of them and scored on the rest. */
export interface Relations {
  relations: Relation[];
  best: Relation[];
}

export type Direction = "to_head" | "to_dependent" | "read_by_head";

export interface Relation {
  head: string;
  relation: string;
  direction: Direction;
  score: Figure;
  /** The score of the best fixed offset. */
  baseline: Figure;
  support: number;
  /** Null: there was one fold alone. */
  gain_half_width: Figure;
}

const relation = record<Relation>({
  head: text,
  relation: text,
  direction: oneOf("to_head", "to_dependent", "read_by_head"),
  score: figure,
  baseline: figure,
  support: count,
  gain_half_width: figure,
});
const relations = record<Relations>({ relations: listOf(relation), best: listOf(relation) });

/** `heads alignment` */
export interface Alignment {
  alignment: Aligner[];
  /** Of the best fixed offset. */
  alignment_baseline: { accuracy: Figure };
}

export interface Aligner {
  /** "decoder.0.cross_attention.mean": the mean of a layer's heads. */
  head: string;
  /** Whether its query is the row that predicts the word or the row that reads it. */
  query: "predicts" | "reads";
  accuracy: Figure;
}

const alignment = record<Alignment>({
  alignment: listOf(record<Aligner>({ head: text, query: oneOf("predicts", "reads"), accuracy: figure })),
  alignment_baseline: record({ accuracy: figure }),
});

/** `heads similar` */
export interface Similar {
  kinds: { heads: HeadNear[] }[];
}

export interface HeadNear {
  head: string;
  nearest: { head: string; divergence: Figure /** Of the divergence by chance. */; ratio: Figure }[];
}

const similar = record<Similar>({
  kinds: listOf(
    record({
      heads: listOf(
        record<HeadNear>({
          head: text,
          nearest: listOf(record({ head: text, divergence: figure, ratio: figure })),
        }),
      ),
    }),
  ),
});

/** `heads where` */
export interface Where {
  heads: HeadWhere[];
}

export interface HeadWhere {
  head: string;
  strongest: StrongSentence[];
  key_tokens: TokenShare[];
  query_tokens: TokenShare[];
  alike: { head: string; agreement: Figure; by_chance: Figure }[];
}

export interface StrongSentence {
  line: number;
  strength: Figure;
  query: PlacedToken;
  key: PlacedToken;
  /** The query's sentence. */
  text: string;
  /** The key's, of cross-attention; null: it is the same. */
  source: string | null;
}

/** A token at the characters [begin, end) of its sentence. */
export interface PlacedToken {
  token: string;
  begin: number;
  end: number;
}

export interface TokenShare {
  token: string;
  share: Figure;
  lift: Figure;
}

const placedToken = record<PlacedToken>({ token: text, begin: count, end: count });
const tokenShare = record<TokenShare>({ token: text, share: figure, lift: figure });
const strongSentence = record<StrongSentence>({
  line: count,
  strength: figure,
  query: placedToken,
  key: placedToken,
  text,
  source: orAbsent(text),
});
const where = record<Where>({
  heads: listOf(
    record<HeadWhere>({
      head: text,
      strongest: listOf(strongSentence),
      key_tokens: listOf(tokenShare),
      query_tokens: listOf(tokenShare),
      alike: listOf(record({ head: text, agreement: figure, by_chance: figure })),
    }),
  ),
});

/** `heads circuits` */
export interface Circuits {
  circuits: HeadCircuits[];
  compositions: Composition[];
}

export interface HeadCircuits {
  head: string;
  query_key: Circuit;
  value_output: Circuit;
  copying: Figure;
}

export interface Circuit {
  effective_rank: Figure;
  norm: Figure;
  singular_values: Figure[];
}

export interface Composition {
  from: string;
  to: string;
  part: "queries" | "keys" | "values";
  strength: Figure;
}

const circuit = record<Circuit>({ effective_rank: figure, norm: figure, singular_values: listOf(figure) });
const circuits = record<Circuits>({
  circuits: listOf(record<HeadCircuits>({ head: text, query_key: circuit, value_output: circuit, copying: figure })),
  compositions: listOf(
    record<Composition>({ from: text, to: text, part: oneOf("queries", "keys", "values"), strength: figure }),
  ),
});

/** `heads importance` */
export interface Importance {
  score: ScoreKind;
  sentences: number;
  heads: HeadImportance[];
}

export type ScoreKind = "translation" | "next-tokens" | "masked-words" | "labels" | "vectors";

export interface HeadImportance {
  head: string;
  rank: number;
  importance: Figure;
  /** Null: there was one text alone. */
  importance_half_width: Figure;
}

const importance = record<Importance>({
  score: oneOf("translation", "next-tokens", "masked-words", "labels", "vectors"),
  sentences: count,
  heads: listOf(record<HeadImportance>({ head: text, rank: count, importance: figure, importance_half_width: figure })),
});

/** All of them, on the corpus or else on the texts of the page; null: the page has none. */
export interface Evidence {
  /** "the texts of this page", or the corpus by name with its count of sentences. */
  of: string;
  stats: Stats | null;
  similar: Similar | null;
  relations: Relations | null;
  alignment: Alignment | null;
  where: Where | null;
  circuits: Circuits | null;
  /** By gradients of gates, on what `of` says. */
  importance: Importance | null;
  /** Without each head, on the texts of this page. */
  ablation: Importance | null;
}

export const readEvidence = record<Evidence>({
  of: text,
  stats: orNull(stats),
  similar: orNull(similar),
  relations: orNull(relations),
  alignment: orNull(alignment),
  where: orNull(where),
  circuits: orNull(circuits),
  importance: orAbsent(importance),
  ablation: orAbsent(importance),
});
