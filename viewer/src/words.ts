// What a head does, in the few words of the heading.
import { explainedInWords } from "./attribution";
import { bestRelation, entries, number, object, ofHead, text } from "./evidence";
import { findHead, placeInWords } from "./names";
import type { Attention, Page, Run } from "./page";
import type { Choice } from "./state";
import { walkedHead } from "./walk";

/** Dependent and head in words; subtypes (nsubj:pass) have their own line or that of the relation. The tool uses the same words. */
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

export function wordsOfRelation(relation: string, direction: string): string {
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
const whole = (share: number): string => `${Math.round(100 * share)} %`;

function find(run: Run, head: string): string {
  const relation = bestRelation(run, head);
  if (relation)
    return `${wordsOfRelation(text(relation.relation) ?? "", text(relation.direction) ?? "")}, ${whole(number(relation.score) ?? 0)}`;
  const baseline = number(object(object(run.evidence.alignment)?.alignment_baseline)?.accuracy) ?? 0;
  const links = entries(run.evidence.alignment, "alignment")
    .filter((one) => one.head === head)
    .sort((a, b) => (number(b.accuracy) ?? 0) - (number(a.accuracy) ?? 0));
  const link = links[0];
  if (link && (number(link.accuracy) ?? 0) > baseline)
    return `${link.query === "predicts" ? "word to come" : "word just written"} → its source word, ${whole(number(link.accuracy) ?? 0)}`;
  const stats = ofHead(run.evidence.stats, "heads", head);
  if (!stats) return "";
  const role = text(stats.role);
  if (role === "induction" || role === "rare word")
    return `${role === "induction" ? "what followed the same token before" : "each token → the rarest word"}, ${whole(number(stats[role === "induction" ? "induction" : "on_rarest"]) ?? 0)}`;
  const most = object(stats.most_at_offset);
  const offsets = head.includes("cross")
    ? []
    : (
        [
          ["-1", "the one before"],
          ["+0", "itself"],
          ["+1", "the next one"],
        ] as const
      )
        .map(([at, where]): [string, number] => [where, number(most?.[at]) ?? 0])
        .sort((a, b) => b[1] - a[1]);
  if (offsets[0] && offsets[0][1] >= 0.5) return `each token → ${offsets[0][0]}, ${whole(offsets[0][1])}`;
  const first = number(stats.on_first) ?? 0;
  if (first >= 0.5) return `every token → the first one, ${whole(first)} of the weight`;
  const separators = number(stats.on_separators) ?? 0;
  if (separators >= 0.5) return `every token → special tokens, ${whole(separators)} of the weight`;
  const distance = number(stats.distance);
  return distance === null ? "" : `${distance.toFixed(1)} tokens away on average`;
}

/** What stands in the heading: of the walk the head that is walked through, of attribution what is explained. */
export function heading(page: Page, choice: Choice): { place: string; words: string } {
  const run = page.runs[choice.run] as Run;
  if (choice.view === "attribution") return { place: "Attribution", words: explainedInWords(run.texts[choice.text]) };
  const walk = choice.view === "walk" ? (run.walk ?? page.runs.find((one) => one.walk)?.walk) : null;
  const head = walk ? `${walk.attention}.${walkedHead(walk, choice.head)}` : choice.head;
  const at = findHead(run, head);
  if (!at) return { place: "", words: "" };
  const place = placeInWords(run.attentions[at.attention] as Attention, at.head);
  const given = head === page.opens.head && choice.run === page.opens.run;
  return { place, words: given ? page.opens.words : headInWords(run, head) };
}
