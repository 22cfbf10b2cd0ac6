import { describe, expect, it } from "vitest";
import {
  alignerBandsOf,
  alignersInWords,
  alignersOf,
  headAlignsInWords,
  inShort,
  linkedWords,
  meaningOfAligners,
  offsetInWords,
  otherRowInWords,
  rankedAligners,
} from "../src/aligners";
import type { Aligned } from "../src/given";
import type { Run, Text } from "../src/page";
import { firstChoice, viewsOf } from "../src/state";
import type { HeadWeights } from "../src/weights";
import { heading } from "../src/words";
import { katzeAligners } from "./given";
import { translator } from "./pages";
import { tokensOf } from "./synthetic";

const page = () => structuredClone(translator().page);
const run = page().runs[0] as Run;
const best = "decoder.1.cross_attention.3";
const gold: Aligned = { ...katzeAligners, chosen: null };

describe("heads that align words", () => {
  it("are squares by layer, by their better row, and those that were chosen have a frame", () => {
    const [band, ...others] = alignerBandsOf(run, katzeAligners);
    expect(others).toEqual([]);
    expect(band).toMatchObject({ kind: "cross", title: "Cross-attention", columns: 2, hasFeedForward: false });
    const squares = band?.layers.map(({ layer, heads }) => [
      layer,
      heads.map(({ value, framed }) => [Math.round(1000 * (value ?? 0)) / 1000, framed ?? ""]),
    ]);
    const chosen = "chosen to align";
    expect(squares).toEqual([
      [
        0,
        [
          [0.44, ""],
          [0.013, ""],
        ],
      ],
      [
        1,
        [
          [0.8, chosen],
          [0.85, chosen],
        ],
      ],
    ]);
    expect(alignerBandsOf(run, { ...katzeAligners, alignment: [] })).toEqual([]);
  });

  it("are ranked by their better row, with the mean of a layer's heads among them", () => {
    expect(rankedAligners(katzeAligners).map(({ head, query }) => `${head.slice(8)} ${query}`)).toEqual([
      "1.cross_attention.mean predicts",
      "1.cross_attention.3 predicts",
      "1.cross_attention.0 predicts",
      "0.cross_attention.0 reads",
      "0.cross_attention.mean reads",
      "0.cross_attention.1 reads",
    ]);
    expect(alignersOf(katzeAligners)).toMatchObject({ heads: katzeAligners.chosen?.heads, query: "predicts" });
    expect(alignersOf(gold)).toEqual({ heads: [best], query: "predicts" });
    expect(alignersOf({ ...gold, alignment: [] }).heads).toEqual([]);
    expect(inShort("decoder.11.cross_attention.mean")).toBe("layer 11, mean of heads");
    expect(inShort("decoder.1.cross_attention.12")).toBe("layer 1, head 12");
    expect(inShort("decoder.1.self_attention.12")).toBe("decoder.1.self_attention.12");
  });

  it("are put in words for both rows, with their rank", () => {
    expect(headAlignsInWords(run, katzeAligners, best)).toBe(
      "Cross-attention 1, head 3 links a word best by the row that predicts it: precision 90 %, recall 80 %, " +
        "error rate 15 %, number 1 of 4 heads.",
    );
    expect(otherRowInWords(katzeAligners, best)).toBe(
      "By the row that has just read it: precision 35 %, recall 25 %, error rate 71 %. " +
        "It is one of the heads that were chosen to align.",
    );
    expect(headAlignsInWords(run, katzeAligners, "decoder.0.cross_attention.0")).toContain(
      "by the row that has just read it: precision 50 %, recall 40 %, error rate 56 %, number 3 of 4 heads",
    );
    expect(otherRowInWords(katzeAligners, "decoder.0.cross_attention.0")).toBe(
      "By the row that predicts it: precision 25 %, recall 20 %, error rate 78 %.",
    );
    expect(headAlignsInWords(run, katzeAligners, "encoder.0.self_attention.0")).toContain("none of cross-attention");
    expect(otherRowInWords(katzeAligners, "encoder.0.self_attention.0")).toBe("");
  });

  it("say what they are compared with", () => {
    expect(meaningOfAligners(katzeAligners)).toContain("Li et al. 2019");
    expect(meaningOfAligners(katzeAligners)).toContain(
      "on 7 sentences with greedy translations of the model, 23 aligned words.",
    );
    expect(meaningOfAligners(gold)).toContain("those of a gold alignment");
    expect(meaningOfAligners(gold)).not.toContain("Li et al.");
    const one = { ...gold, sentences: 1, targets: "given" };
    expect(meaningOfAligners(one)).toContain("on 1 sentence with their translations as given");
    const at = (offset: number) =>
      offsetInWords({ ...gold, alignment_baseline: { ...gold.alignment_baseline, offset } });
    expect([-2, -1, 0, 1, 3].map(at)).toEqual(
      ["2 words before", "1 word before", "the same place", "1 word further on", "3 words further on"].map(
        (where) => `best fixed offset: ${where}`,
      ),
    );
  });

  it("have a view where a page has any, and a heading", () => {
    const made = page();
    expect(viewsOf(made)).not.toContain("aligners");
    (made.runs[0] as Run).aligners = katzeAligners;
    expect(viewsOf(made)).toContain("aligners");
    const choice = { ...firstChoice(made), view: "aligners" as const };
    expect(heading(made, choice)).toEqual({
      place: "Aligners",
      words: "the mean of 2 heads, alignment error rate 6.0 %",
    });
    expect(alignersInWords(run, gold)).toBe("Cross-attention 1, head 3, alignment error rate 15 %");
    expect(alignersInWords(run, { ...gold, alignment: [] })).toBe("");
    expect(alignersInWords(run, null)).toBe("");
  });
});

/** Pieces of words on both sides, and special tokens at both ends. */
function smallText(): Text {
  const target = tokensOf("<s> ein un|glück|licher Hund", ["<s>"]);
  const predicted = tokensOf("ein un|glück|licher Hund </s>", ["</s>"]);
  const source = tokensOf("en_XX an un|happy dog </s>", ["en_XX", "</s>"]);
  return { ...(run.texts[0] as Text), source, target, predicted };
}

// Rows: ein, un, glück, licher, Hund, </s>; keys: en_XX, an, un, happy, dog, </s>.
const rows = [
  [0.1, 0.6, 0.1, 0.1, 0.1, 0],
  [0, 0, 0.5, 0.2, 0.3, 0],
  [0, 0, 0.2, 0.4, 0.4, 0],
  [0, 0, 0.3, 0.3, 0.4, 0],
  [0.3, 0, 0, 0, 0.4, 0.3],
  [0, 0, 0, 0, 0, 1],
];
const weights = (more: number): HeadWeights => ({
  queries: 6,
  keys: 6,
  a: Float32Array.from(rows.flat().map((weight) => weight + more)),
  signed: false,
});

describe("the words of a text", () => {
  it("are linked with the source words that the mean of the chosen heads reads most, pieces put together", () => {
    const asked: [number, number][] = [];
    const words = linkedWords(run, smallText(), katzeAligners, (attention, head) => {
      asked.push([attention, head]);
      return weights(head === 3 ? 0.06 : -0.06);
    });
    const cross = run.attentions.findIndex(({ name }) => name === "decoder.1.cross_attention");
    expect(asked).toEqual([
      [cross, 3],
      [cross, 0],
    ]);
    expect(words.map(({ word, source }) => [word, source])).toEqual([
      ["ein", "an"],
      ["unglücklicher", "unhappy"],
      ["Hund", null],
    ]);
    expect(words[0]?.weight).toBeCloseTo(0.6, 5);
    expect(words[1]?.weight).toBeCloseTo((0.7 + 0.6 + 0.6) / 3, 5);
    expect(words[2]?.weight, "language and end token together").toBeCloseTo(0.6, 5);
  });

  it("are those that a row has just read, where such rows align", () => {
    const its = { ...gold, alignment: gold.alignment.filter(({ query }) => query === "reads") };
    // Rows are one later: the first has read <s>.
    const words = linkedWords(run, smallText(), its, () => weights(0));
    expect(words.map(({ word, source }) => [word, source])).toEqual([
      ["ein", "unhappy"],
      ["unglücklicher", "unhappy"],
      ["Hund", null],
    ]);
  });

  it("are none where there is no translation, or no head", () => {
    const text = { ...smallText(), target: null, predicted: null };
    expect(linkedWords(run, text, katzeAligners, () => weights(0))).toEqual([]);
    expect(linkedWords(run, smallText(), { ...gold, alignment: [] }, () => weights(0))).toEqual([]);
  });
});
