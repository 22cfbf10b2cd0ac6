// What is known of a head beyond the text: where it fires most in the corpus, its tokens, heads like it, its circuits.
import type { App } from "../app";
import { spectrum } from "../draw/bars";
import { h, type Child } from "../dom";
import { entries, importanceInWords, list, number, object, ofHead, text, type Fields } from "../evidence";
import { figure, findHead, percent, placeInWords, shown, visible } from "../names";
import type { Attention, Run } from "../page";
import type { Choice } from "../state";
import { headInWords } from "../words";

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

function markOf(side: Fields | null, kind: string): { begin: number; end: number; kind: string } {
  return { begin: number(side?.begin) ?? 0, end: number(side?.end) ?? 0, kind };
}

function strongest(where: Fields): HTMLElement | null {
  const all = list(where.strongest)
    .map(object)
    .filter((one): one is Fields => one !== null)
    .slice(0, 6);
  if (all.length === 0) return null;
  const lines = all.map((one) => {
    const query = markOf(object(one.query), "q");
    const key = markOf(object(one.key), "k");
    const source = text(one.source);
    const pair = (side: string) => h("bdi", {}, shown(text(object(one[side])?.token) ?? "", 30));
    return h(
      "li",
      {},
      h("span", { class: "strength" }, percent(number(one.strength) ?? 0)),
      h(
        "div",
        {},
        source !== null && h("p", {}, marked(source, [key])),
        h("p", {}, marked(text(one.text) ?? "", source !== null ? [query] : [query, key])),
        h(
          "p",
          { class: "quiet" },
          h("span", { class: "q" }, pair("query")),
          " reads ",
          h("span", { class: "k" }, pair("key")),
          `, line ${number(one.line) ?? "?"}`,
        ),
      ),
    );
  });
  return section(
    "Where it fires most",
    "Sentences of the corpus by their largest weight, strongest first: the query in blue, the key that it reads in red.",
    h("ol", { class: "strong" }, ...lines),
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

function tokens(where: Fields, name: string, title: string, about: string): HTMLElement | null {
  const all = list(where[name])
    .map(object)
    .filter((one): one is Fields => one !== null)
    .slice(0, 10);
  if (all.length === 0) return null;
  const most = Math.max(...all.map((one) => number(one.share) ?? 0)) || 1;
  return section(
    title,
    about,
    h(
      "table",
      { class: "figures tokens" },
      h(
        "tbody",
        {},
        ...all.map((one) => {
          const share = number(one.share) ?? 0;
          const cell = h("td", { class: "bar" }, percent(share));
          cell.style.setProperty("--part", `${Math.round((100 * share) / most)}%`);
          return h(
            "tr",
            {},
            h("th", { scope: "row" }, h("bdi", {}, shown(text(one.token) ?? "", 24))),
            cell,
            h("td", {}, `× ${figure(number(one.lift) ?? 0)}`),
          );
        }),
      ),
    ),
  );
}

function link(app: App, run: Run, name: string, ...more: Child[]): HTMLElement | null {
  const at = findHead(run, name);
  if (!at) return null;
  const of = run.attentions[at.attention] as Attention;
  return h(
    "li",
    {},
    h(
      "button",
      { type: "button", class: "link", "data-go": name, click: () => app.choose({ head: name, key: null }) },
      placeInWords(of, at.head),
    ),
    " ",
    ...more,
    h("small", {}, " ", headInWords(run, name)),
  );
}

function alike(app: App, run: Run, head: string): HTMLElement | null {
  const kinds = entries(run.evidence.similar, "kinds");
  const own = kinds.flatMap((kind) => entries(kind, "heads")).find((one) => one.head === head);
  const near = entries(own, "nearest").map((one) =>
    link(
      app,
      run,
      text(one.head) ?? "",
      `divergence ${figure(number(one.divergence) ?? 0)} nats${number(one.ratio) === null ? "" : `, ${percent(number(one.ratio) ?? 0)} of chance`}`,
    ),
  );
  const agree = entries(ofHead(run.evidence.where, "heads", head), "alike")
    .slice(0, 4)
    .map((one) =>
      link(
        app,
        run,
        text(one.head) ?? "",
        `the same choice in ${percent(number(one.agreement) ?? 0)}, by chance ${percent(number(one.by_chance) ?? 0)}`,
      ),
    );
  const all = [...near, ...agree].filter((one): one is HTMLElement => one !== null);
  return all.length === 0
    ? null
    : section(
        "Heads like it",
        "By how little their weights diverge, and by how often they choose the same key.",
        h("ul", { class: "links" }, ...all),
      );
}

function circuits(app: App, run: Run, head: string): HTMLElement | null {
  const own = ofHead(run.evidence.circuits, "circuits", head);
  if (!own) return null;
  const one = (name: string, title: string, kind: string) => {
    const circuit = object(own[name]);
    const values = list(circuit?.singular_values).map((value) => number(value) ?? 0);
    return (
      circuit &&
      h(
        "figure",
        {},
        spectrum(values, 220, 56, kind),
        h(
          "figcaption",
          {},
          title,
          h("br"),
          `effective rank ${figure(number(circuit.effective_rank) ?? 0)} of ${values.length}, norm ${figure(number(circuit.norm) ?? 0)}`,
        ),
      )
    );
  };
  const copying = number(own.copying);
  const parts: { [part: string]: string } = { queries: "its queries", keys: "its keys", values: "its values" };
  const others = entries(run.evidence.circuits, "compositions")
    .filter((pair) => pair.from === head || pair.to === head)
    .sort((a, b) => (number(b.strength) ?? 0) - (number(a.strength) ?? 0))
    .slice(0, 4)
    .map((pair) => {
      const reads = pair.to === head;
      return link(
        app,
        run,
        text(reads ? pair.from : pair.to) ?? "",
        `${reads ? "is read by" : "reads this one by"} ${parts[text(pair.part) ?? ""] ?? ""}, strength ${figure(number(pair.strength) ?? 0)}`,
      );
    })
    .filter((item): item is HTMLElement => item !== null);
  return section(
    "Circuits",
    "Singular values of what makes its scores and of what it moves.",
    h(
      "div",
      { class: "spectra" },
      one("query_key", "W_Q W_Kᵀ, its scores", "qk"),
      one("value_output", "W_V W_O, what it moves", "v"),
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
    const where = ofHead(run.evidence.where, "heads", now.head);
    const about = "By how much more often than expected";
    const all = [
      importance(run, now.head),
      where && strongest(where),
      where && tokens(where, "key_tokens", "What it reads", `Tokens that its queries choose. ${about} (×).`),
      where && tokens(where, "query_tokens", "Who reads", `Tokens whose queries are sure of their key. ${about} (×).`),
      alike(this.app, run, now.head),
      circuits(this.app, run, now.head),
    ].filter((one): one is HTMLElement => one !== null);
    this.element.replaceChildren(...all);
  }
}
