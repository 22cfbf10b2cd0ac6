// What is known of a head beyond the text: where it fires most in the corpus, its tokens, heads like it, its circuits.
import type { App } from "../app";
import { spectrum } from "../draw/bars";
import { h, type Child } from "../dom";
import { importanceInWords, ofHead } from "../evidence";
import { figure, findHead, percent, placeInWords, shown, visible } from "../names";
import type { Attention, Run } from "../page";
import type { Figure } from "../reader";
import type { Circuit, Composition, HeadNear, HeadWhere, PlacedToken, StrongSentence, TokenShare } from "../reports";
import type { Choice } from "../state";
import { headInWords } from "../words";
import { headLink } from "./links";

function section(title: string, about: string, ...children: Child[]): HTMLElement {
  return h("section", { class: "known" }, h("h2", {}, title), h("p", { class: "quiet" }, about), ...children);
}

/** A text with the two tokens of a pair marked. */
function marked(whole: string, marks: { begin: number; end: number; kind: string }[]): HTMLElement {
  const characters = [...whole];
  const to = h("bdi", { class: "sentence-of" });
  let at = 0;
  for (const mark of marks.filter((one) => one.end > one.begin).sort((a, b) => a.begin - b.begin)) {
    if (mark.begin < at) continue;
    to.append(
      visible(characters.slice(at, mark.begin).join("")),
      h("mark", { class: mark.kind }, shown(characters.slice(mark.begin, mark.end).join(""), 60)),
    );
    at = mark.end;
  }
  to.append(visible(characters.slice(at, at + 400).join("")));
  return to;
}

const figureOrNot = (value: Figure): string => (value === null ? "?" : figure(value));
const percentOrNot = (share: Figure): string => (share === null ? "?" : percent(share));

const markOf = ({ begin, end }: PlacedToken, kind: "q" | "k") => ({ begin, end, kind });

function strongSentence({ strength, query, key, text, source, line }: StrongSentence): HTMLElement {
  const [read, by] = [markOf(key, "k"), markOf(query, "q")];
  const token = (of: PlacedToken, kind: string) => h("span", { class: kind }, h("bdi", {}, shown(of.token, 30)));
  return h(
    "li",
    {},
    h("span", { class: "strength" }, percentOrNot(strength)),
    h(
      "div",
      {},
      source !== null && h("p", {}, marked(source, [read])),
      h("p", {}, marked(text, source !== null ? [by] : [by, read])),
      h("p", { class: "quiet" }, token(query, "q"), " reads ", token(key, "k"), `, line ${line}`),
    ),
  );
}

function strongest(where: HeadWhere): HTMLElement | null {
  if (where.strongest.length === 0) return null;
  return section(
    "Where it fires most",
    "Sentences of the corpus by their largest weight, strongest first: " +
      "the query in blue, the key that it reads in red.",
    h("ol", { class: "strong" }, ...where.strongest.slice(0, 6).map(strongSentence)),
  );
}

function importance(run: Run, head: string): HTMLElement | null {
  const lines = importanceInWords(run, head);
  return lines.length === 0
    ? null
    : section(
        "Does the model need it?",
        "Of one head at a time: two that do the same can each be spared.",
        h("div", { class: "need" }, ...lines.map((line) => h("p", {}, line))),
      );
}

function tokenRow({ token, share, lift }: TokenShare, most: number): HTMLElement {
  const cell = h("td", { class: "bar" }, percentOrNot(share));
  cell.style.setProperty("--part", `${Math.round((100 * (share ?? 0)) / most)}%`);
  const name = h("th", { scope: "row" }, h("bdi", {}, shown(token, 24)));
  return h("tr", {}, name, cell, h("td", {}, `× ${figureOrNot(lift)}`));
}

function tokens(shares: TokenShare[], title: string, about: string): HTMLElement | null {
  const all = shares.slice(0, 10);
  if (all.length === 0) return null;
  const most = Math.max(...all.map((one) => one.share ?? 0)) || 1;
  const rows = all.map((one) => tokenRow(one, most));
  return section(title, about, h("table", { class: "figures tokens" }, h("tbody", {}, ...rows)));
}

function link(app: App, run: Run, name: string, ...more: Child[]): HTMLElement | null {
  const at = findHead(run, name);
  if (!at) return null;
  const of = run.attentions[at.attention] as Attention;
  return h(
    "li",
    {},
    headLink(app, name, placeInWords(of, at.head)),
    " ",
    ...more,
    h("small", {}, " ", headInWords(run, name)),
  );
}

function divergenceInWords({ divergence, ratio }: HeadNear["nearest"][number]): string {
  return `divergence ${figureOrNot(divergence)} nats${ratio === null ? "" : `, ${percent(ratio)} of chance`}`;
}

function agreementInWords({ agreement, by_chance }: HeadWhere["alike"][number]): string {
  return `the same choice in ${percentOrNot(agreement)}, by chance ${percentOrNot(by_chance)}`;
}

function alike(app: App, run: Run, head: string): HTMLElement | null {
  const compared = run.evidence.similar?.kinds.flatMap((kind) => kind.heads);
  const near = ofHead(compared, head)?.nearest ?? [];
  const agree = ofHead(run.evidence.where?.heads, head)?.alike ?? [];
  const all = [
    ...near.map((one) => link(app, run, one.head, divergenceInWords(one))),
    ...agree.slice(0, 4).map((one) => link(app, run, one.head, agreementInWords(one))),
  ].filter((one): one is HTMLElement => one !== null);
  return all.length === 0
    ? null
    : section(
        "Heads like it",
        "By how little their weights diverge, and by how often they choose the same key.",
        h("ul", { class: "links" }, ...all),
      );
}

function spectrumOf({ singular_values, effective_rank, norm }: Circuit, title: string, kind: string): HTMLElement {
  const values = singular_values.map((value) => value ?? 0);
  const rank = `effective rank ${figureOrNot(effective_rank)} of ${values.length}, norm ${figureOrNot(norm)}`;
  return h("figure", {}, spectrum(values, 220, 56, kind), h("figcaption", {}, title, h("br"), rank));
}

/** The other head of a composition, and what one of the two reads of the other. */
function composed(app: App, run: Run, { from, to, part, strength }: Composition, head: string): HTMLElement | null {
  const reads = to === head;
  const how = `${reads ? "is read by" : "reads this one by"} its ${part}, strength ${figureOrNot(strength)}`;
  return link(app, run, reads ? from : to, how);
}

function circuits(app: App, run: Run, head: string): HTMLElement | null {
  const own = ofHead(run.evidence.circuits?.circuits, head);
  if (!own) return null;
  const { copying } = own;
  const others = (run.evidence.circuits?.compositions ?? [])
    .filter((pair) => pair.from === head || pair.to === head)
    .sort((a, b) => (b.strength ?? 0) - (a.strength ?? 0))
    .slice(0, 4)
    .map((pair) => composed(app, run, pair, head))
    .filter((item): item is HTMLElement => item !== null);
  return section(
    "Circuits",
    "Singular values of what makes its scores and of what it moves.",
    h(
      "div",
      { class: "spectra" },
      spectrumOf(own.query_key, "W_Q W_Kᵀ, its scores", "qk"),
      spectrumOf(own.value_output, "W_V W_O, what it moves", "v"),
    ),
    copying !== null &&
      h(
        "p",
        {},
        `Copying score ${figure(copying)}: reading a token makes it ${copying >= 0 ? "more" : "less"} probable.`,
      ),
    others.length > 0 && h("ul", { class: "links" }, ...others),
  );
}

export class Known {
  readonly element = h("div", { class: "knowns" });

  constructor(private readonly app: App) {}

  update(now: Choice): void {
    const run = this.app.page.runs[now.run] as Run;
    const where = ofHead(run.evidence.where?.heads, now.head);
    const about = "By how much more often than expected";
    const all = [
      importance(run, now.head),
      where && strongest(where),
      where && tokens(where.key_tokens, "What it reads", `Tokens that its queries choose. ${about} (×).`),
      where && tokens(where.query_tokens, "Who reads", `Tokens whose queries are sure of their key. ${about} (×).`),
      alike(this.app, run, now.head),
      circuits(this.app, run, now.head),
    ].filter((one): one is HTMLElement => one !== null);
    this.element.replaceChildren(...all);
  }
}
