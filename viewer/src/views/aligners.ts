// Heads that align words: a square for each head of cross-attention, what the chosen one gets, the best ones, and how
// the text of the page is aligned.
import {
  alignerBandsOf,
  alignersOf,
  headAlignsInWords,
  inShort,
  linkedWords,
  meaningOfAligners,
  offsetInWords,
  otherRowInWords,
  rankedAligners,
  rowsOf,
  type LinkedWord,
} from "../aligners";
import type { App, Show } from "../app";
import { css, diverging, inkOn, shade } from "../draw/colours";
import { h, type Child } from "../dom";
import type { Aligned, LinkScore } from "../given";
import { findHead, percent, visible } from "../names";
import type { Run } from "../page";
import { analysisView, type Analysed } from "./analysed";
import { figuresTable, type TableRow } from "./figurestable";
import { headLink } from "./links";
import { Squares } from "./squares";

const best = 10;

/** A link of a head; the mean of a layer's heads is none that could be chosen. */
const nameOf = (app: App, run: Run, name: string): Child =>
  findHead(run, name) ? headLink(app, name, inShort(name)) : inShort(name);

function bestTable(app: App, run: Run, its: Aligned): HTMLElement {
  const line = (name: Child, query: string, of: LinkScore): TableRow => [
    name,
    ...[of.error_rate, of.precision, of.recall].map(percent),
    query,
  ];
  const rows = rankedAligners(its)
    .slice(0, best)
    .map((one) => line(nameOf(app, run, one.head), one.query, one));
  if (its.chosen) {
    const who = its.chosen.heads.length > 1 ? "mean of those chosen to align" : "the one chosen to align";
    rows.push(line(who, its.chosen.query, its.chosen));
  }
  rows.push(line(offsetInWords(its), "", its.alignment_baseline));
  return figuresTable(["head", "AER", "precision", "recall", "row"], rows);
}

/** "Chosen to align, with dashed frames: …, … and …; a word is linked by the row that predicts it." */
function chosenHeads(app: App, its: Aligned): HTMLElement | null {
  if (!its.chosen) return null;
  const links = its.chosen.heads.flatMap((head, i, { length }) => [
    i === 0 ? "" : i === length - 1 ? " and " : ", ",
    headLink(app, head, inShort(head)),
  ]);
  return h(
    "p",
    {},
    "Chosen to align, with dashed frames: ",
    ...links,
    `; a word is linked by ${rowsOf[its.chosen.query]}.`,
  );
}

/** Each word of the translation with its source word below. */
function linkedText(app: App, words: LinkedWord[]): HTMLElement {
  const item = ({ word, source, weight }: LinkedWord) => {
    const below = h("bdi", { class: "source", "data-share": weight }, source ?? "–");
    const colour = diverging(source === null ? 0 : shade(weight), app.theme());
    below.style.background = css(colour);
    below.style.color = inkOn(colour);
    return h("li", { title: source === null ? "no source word" : percent(weight) }, h("bdi", {}, word), below);
  };
  return h(
    "ol",
    { class: "linked", "aria-label": "Words of the translation and their source words" },
    ...words.map(item),
  );
}

function textSection(app: App, { run, text, its }: Analysed<Aligned>): HTMLElement | null {
  const now = app.now();
  const words = linkedWords(run, text, its, (attention, head) =>
    app.weights.of({ run: now.run, text: now.text, attention, head }),
  );
  if (words.length === 0) return null;
  const { heads } = alignersOf(its);
  const who = !its.chosen
    ? "the best head reads"
    : heads.length > 1
      ? "the heads chosen to align read together"
      : "the head chosen to align reads";
  return h(
    "section",
    {},
    h("h2", {}, "This text"),
    h(
      "p",
      { class: "quiet" },
      `Below each word of the translation the source word that ${who} most; the deeper the colour, the more weight.`,
    ),
    linkedText(app, words),
  );
}

export function alignersView(app: App): Show {
  const squares = new Squares(
    app,
    "How well each head aligns",
    "Rows are layers, columns heads; a square says 1 − AER, by the better row of weights.",
    "data-aligns",
  );
  const aligns = h("p", { class: "adds", "aria-live": "polite" });
  const other = h("p", {});
  const whole = h("div", { class: "sides" });
  const all = h(
    "div",
    { class: "beside" },
    h("section", { class: "adding", "aria-label": "How the chosen head aligns" }, aligns, other),
    squares.element,
    h("section", { class: "summing", "aria-label": "The best heads, and this text" }, whole),
  );

  return analysisView<Aligned>(app, {
    className: "aligners",
    things: "Aligners of this model",
    of: (run) => run.aligners,
    update(analysed, now, before, element) {
      const { run, its } = analysed;
      if (!before) {
        squares.build(alignerBandsOf(run, its), 1);
        whole.replaceChildren(
          ...[
            h("h2", {}, "Heads that align best"),
            chosenHeads(app, its),
            h("div", { class: "wide" }, bestTable(app, run, its)),
            textSection(app, analysed),
            h(
              "p",
              { class: "quiet" },
              `${meaningOfAligners(its)} The model: ${visible(its.model)}, ` +
                `with the precision ${visible(its.precision)}.`,
            ),
          ].filter((one) => one !== null),
        );
        element.replaceChildren(all);
        requestAnimationFrame(() => squares.reveal(now.head));
      }
      squares.choose(now.head);
      if (before?.head === now.head) return;
      aligns.textContent = headAlignsInWords(run, its, now.head);
      other.textContent = otherRowInWords(its, now.head);
    },
  });
}
