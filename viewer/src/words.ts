// What a head does, in the few words of the heading.
import { bestRelation, number, object, ofHead, relationTitle, text, entries } from "./evidence";
import { findHead, percent, placeInWords } from "./names";
import type { Attention, Page, Run } from "./page";
import type { Choice } from "./state";

const relations: { [key: string]: string } = {
  "det/to_head": "article → noun", "det/to_dependent": "noun → article", "amod/to_head": "adjective → noun", "amod/to_dependent": "noun → adjective",
  "nsubj/to_head": "subject → verb", "nsubj/to_dependent": "verb → subject", "obj/to_head": "object → verb", "obj/to_dependent": "verb → object",
  "case/to_head": "preposition → noun", "case/to_dependent": "noun → preposition", "aux/to_head": "auxiliary → verb", "aux/to_dependent": "verb → auxiliary",
  "advmod/to_head": "adverb → head", "compound/to_head": "compound → noun", "nummod/to_head": "number → noun", "mark/to_head": "marker → verb",
  "cop/to_head": "copula → predicate", "cc/to_head": "conjunction → conjunct", "conj/to_head": "conjunct → first conjunct",
};

const offsets: { [role: string]: string } = { "previous token": "-1", "same token": "+0", "next token": "+1" };

/** "article → noun, 97 %" of any head, from what the evidence is surest of. */
export function headInWords(run: Run, head: string): string {
  const relation = bestRelation(run, head);
  if (relation) {
    const key = `${text(relation.relation) ?? ""}/${text(relation.direction) ?? ""}`;
    return `${relations[key] ?? relationTitle(relation)}, ${percent(number(relation.score) ?? 0)}`;
  }
  const accuracies = entries(run.evidence.alignment, "alignment").filter((one) => one.head === head).map((one) => number(one.accuracy) ?? 0);
  const best = Math.max(0, ...accuracies);
  const baseline = number(object(object(run.evidence.alignment)?.alignment_baseline)?.accuracy) ?? 0;
  if (best > baseline) return `aligned words, ${percent(best)}`;
  const stats = ofHead(run.evidence.stats, "heads", head);
  if (!stats) return "";
  const role = text(stats.role);
  if (role) {
    const offset = offsets[role];
    const share = offset ? number(object(stats.most_at_offset)?.[offset]) : number(stats[shares[role] ?? ""]);
    return share === null ? role : `${role}, ${percent(share)}`;
  }
  const entropy = number(stats.entropy_share);
  return entropy === null ? "" : `${entropy > 0.5 ? "spread widely" : "on few tokens"}, entropy ${percent(entropy)}`;
}

const shares: { [role: string]: string } = { induction: "induction", "rare word": "on_rarest", "first token": "on_first", separator: "on_separators" };

/** What stands in the heading. */
export function heading(page: Page, choice: Choice): { place: string; words: string } {
  const run = page.runs[choice.run] as Run;
  const at = findHead(run, choice.head);
  if (!at) return { place: "", words: "" };
  const place = placeInWords(run.attentions[at.attention] as Attention, at.head);
  const given = choice.head === page.opens.head && choice.run === page.opens.run;
  return { place, words: given ? page.opens.words : headInWords(run, choice.head) };
}
