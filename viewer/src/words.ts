// What a head does, in the few words of the heading.
import { alignersInWords } from "./aligners";
import { explainedInWords } from "./attribution";
import { circuitInWords } from "./circuit";
import { summedInWords } from "./contributions";
import { bestRelation, ofHead } from "./evidence";
import { lensInWords } from "./lens";
import { findHead, placeInWords } from "./names";
import type { Attention, Page, Run } from "./page";
import type { Figure } from "./reader";
import type { Direction, HeadStats } from "./reports";
import { retrievalInWords } from "./retrieval";
import type { Choice } from "./state";
import { walkedHead } from "./walk";

/**
 * Dependent and head in words; subtypes (nsubj:pass) have their own line or that of the relation. The tool uses the
 * same words.
 */
const plain: { [relation: string]: [string, string] } = {
  "acl:relcl": ["verb of a relative clause", "noun"],
  advmod: ["adverb", "verb or adjective"],
  amod: ["adjective", "noun"],
  appos: ["apposition", "noun"],
  aux: ["auxiliary", "verb"],
  case: ["preposition", "noun"],
  cc: ["conjunction", "word joined by it"],
  compound: ["noun", "noun that it is compounded with"],
  "compound:prt": ["particle", "verb"],
  cop: ["form of be", "predicate"],
  det: ["article", "noun"],
  iobj: ["indirect object", "verb"],
  mark: ["subordinator", "verb"],
  "nmod:poss": ["possessor", "noun"],
  nsubj: ["subject", "verb"],
  nummod: ["number", "noun"],
  obj: ["object", "verb"],
  obl: ["prepositional object", "verb"],
  punct: ["punctuation", "head of its clause"],
};

export function wordsOfRelation(relation: string, direction: Direction): string {
  const pair = plain[relation] ?? plain[relation.replace(/:.*/, "")];
  const back = direction !== "to_head";
  if (!pair) return back ? `head → its ${relation}` : `${relation} → its head`;
  return back ? `${pair[1]} → ${pair[0]}` : `${pair[0]} → ${pair[1]}`;
}

/** "article → noun, 97 %" of any head, from what the evidence is surest of. */
export function headInWords(run: Run, head: string): string {
  const all = known.get(run) ?? new Map<string, string>();
  known.set(run, all);
  const words = all.get(head) ?? find(run, head);
  all.set(head, words);
  return words;
}

const known = new WeakMap<Run, Map<string, string>>();
const whole = (share: Figure): string => `${Math.round(100 * (share ?? 0))} %`;

function find(run: Run, head: string): string {
  const relation = bestRelation(run, head);
  if (relation) return `${wordsOfRelation(relation.relation, relation.direction)}, ${whole(relation.score)}`;
  const stats = ofHead(run.evidence.stats?.heads, head);
  return alignmentInWords(run, head) ?? (stats ? statsInWords(stats) : "");
}

/** Null: the head aligns no better than a fixed offset. */
function alignmentInWords(run: Run, head: string): string | null {
  const { alignment, alignment_baseline } = run.evidence.alignment ?? { alignment: [], alignment_baseline: null };
  const [link] = alignment.filter((one) => one.head === head).sort((a, b) => (b.accuracy ?? 0) - (a.accuracy ?? 0));
  if (!link || (link.accuracy ?? 0) <= (alignment_baseline?.accuracy ?? 0)) return null;
  const word = link.query === "predicts" ? "word to come" : "word just written";
  return `${word} → its source word, ${whole(link.accuracy)}`;
}

const nearOffsets: [offset: string, where: string][] = [
  ["-1", "the one before"],
  ["+0", "itself"],
  ["+1", "the next one"],
];

/** The offset that most queries of self-attention choose, and their share. */
function mostAt({ head, most_at_offset }: HeadStats): [where: string, share: number] | null {
  if (head.includes("cross")) return null;
  const all = nearOffsets.map(([at, where]): [string, number] => [where, most_at_offset[at] ?? 0]);
  return all.sort((a, b) => b[1] - a[1])[0] ?? null;
}

function statsInWords(stats: HeadStats): string {
  const { role, on_first, on_separators, distance } = stats;
  if (role === "induction") return `what followed the same token before, ${whole(stats.induction)}`;
  if (role === "rare word") return `each token → the rarest word, ${whole(stats.on_rarest)}`;
  const most = mostAt(stats);
  if (most && most[1] >= 0.5) return `each token → ${most[0]}, ${whole(most[1])}`;
  if ((on_first ?? 0) >= 0.5) return `every token → the first one, ${whole(on_first)} of the weight`;
  if ((on_separators ?? 0) >= 0.5) return `every token → special tokens, ${whole(on_separators)} of the weight`;
  return distance === null ? "" : `${distance.toFixed(1)} tokens away on average`;
}

/**
 * What stands in the heading: of the walk the head that is walked through, of attribution and contributions what is
 * explained, of the lens where it comes up.
 */
export function heading(page: Page, choice: Choice): { place: string; words: string } {
  const run = page.runs[choice.run] as Run;
  const text = run.texts[choice.text];
  if (choice.view === "live") return { place: "Try", words: choice.typed || text?.source.text || "" };
  if (choice.view === "attribution") return { place: "Attribution", words: explainedInWords(text) };
  if (choice.view === "contributions") return { place: "Contributions", words: summedInWords(text) };
  if (choice.view === "lens") return { place: "Lens", words: text ? lensInWords(run, text, choice) : "" };
  if (choice.view === "circuit") return { place: "Circuit", words: circuitInWords(run.circuit) };
  if (choice.view === "retrieval") return { place: "Retrieval", words: retrievalInWords(run, run.retrieval) };
  if (choice.view === "aligners") return { place: "Aligners", words: alignersInWords(run, run.aligners) };
  const walk = choice.view === "walk" ? (run.walk ?? page.runs.find((one) => one.walk)?.walk) : null;
  const head = walk ? `${walk.attention}.${walkedHead(walk, choice.head)}` : choice.head;
  const at = findHead(run, head);
  if (!at) return { place: "", words: "" };
  const place = placeInWords(run.attentions[at.attention] as Attention, at.head);
  const given = head === page.opens.head && choice.run === page.opens.run;
  return { place, words: given ? page.opens.words : headInWords(run, head) };
}
