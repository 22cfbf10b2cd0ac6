import { describe, expect, it } from "vitest";
import type { Contributed, ContributedPart } from "../src/contributed";
import {
  fullSquare,
  headAddsInWords,
  inSquare,
  meaningInWords,
  partBandsOf,
  sourcesOf,
  strongestOf,
  summedInWords,
  sumsOf,
  titleOfPart,
} from "../src/contributions";
import { whyNone } from "../src/none";
import type { Run, Text } from "../src/page";
import { firstChoice, viewsOf } from "../src/state";
import { heading } from "../src/words";
import { encoder, translator } from "./pages";

const part = (
  kind: ContributedPart["kind"],
  name: string,
  layer: number | null,
  sum: number,
  sources: number[] | null = null,
): ContributedPart => ({ kind, name, layer, sum, sources });

/** Of "der kleine Hund sieht eine", after which "Katze" comes; layer 0 has lost two heads. */
const katze: Contributed = {
  measure: "logit",
  centred: true,
  answer: { text: "Katze" },
  score: 14.75,
  tokens: ["<s>", "der", "kleine", "Hund", "sieht", "eine"],
  source_tokens: ["the", "small", "dog", "sees", "a", "cat", ".", "</s>"],
  parts: [
    part("embeddings", "decoder.embeddings", null, 0.25),
    part("head", "decoder.0.self_attention.0", 0, -0.5, [0.1, -0.6, 0, 0, 0, 0]),
    part("head", "decoder.0.self_attention.1", 0, 0.003, [0.001, 0.002, 0, 0, 0, 0]),
    part("head", "decoder.0.cross_attention.0", 0, 0, null),
    part("feed_forward", "decoder.0.feed_forward", 0, -1),
    part("head", "decoder.1.self_attention.2", 1, 0.75, [0, 0, 0, 0, 0, 0.75]),
    part("head", "decoder.1.cross_attention.3", 1, 9.25, [0, 0, 0.25, 0, 0, 9, 0, 0]),
    part("feed_forward", "decoder.1.feed_forward", 1, 6),
    part("biases", "decoder.biases", null, 0.000001),
    part("output", "output", null, 0),
  ],
};

const page = () => structuredClone(translator().page);
const run = () => page().runs[0] as Run;
const text = (): Text => ({ ...(run().texts[0] as Text), contributions: katze });

describe("contributions", () => {
  it("are squares by layer, in bands of their kinds; feed-forward layers stand in the first", () => {
    const [own, cross] = partBandsOf(run(), katze);
    expect(own).toMatchObject({ kind: "decoder", columns: 2, hasFeedForward: true });
    expect(own?.layers.map((layer) => layer.heads.map((one) => one.value))).toEqual([[-0.5, 0.003], [0.75]]);
    expect(own?.layers.map((layer) => layer.feedForward?.value)).toEqual([-1, 6]);
    expect(own?.layers[1]?.heads[0]?.title).toBe("Decoder 1, head 2");
    expect(own?.layers[1]?.feedForward?.title).toBe("Feed-forward layer 1");
    expect(cross).toMatchObject({ kind: "cross", columns: 1, hasFeedForward: false });
    expect(cross?.layers.map((layer) => layer.feedForward)).toEqual([null, null]);
    expect(fullSquare(katze)).toBe(9.25);
  });

  it("have short figures in their squares", () => {
    expect([0.123, -0.5, 12.34, 0.0001, -3].map((value) => inSquare(value, 4))).toEqual([
      ".12",
      "−.50",
      "12.34",
      "0",
      "−3.00",
    ]);
    expect(inSquare(-12.34, 20)).toBe("−12.3");
    expect(inSquare(-0.0123, 0.02)).toBe("−.012");
  });

  it("add up by kind, without what is only rounding", () => {
    expect(sumsOf(katze)).toEqual([
      { title: "Embeddings", value: 0.25 },
      { title: "Heads", value: 9.503 },
      { title: "Feed-forward layers", value: 5 },
      { title: "Together", value: 14.75 },
    ]);
    const strongest = strongestOf(katze, 3).map((one) => titleOfPart(run(), one));
    expect(strongest).toEqual(["Cross-attention 1, head 3", "Feed-forward layer 1", "Feed-forward layer 0"]);
  });

  it("come from tokens: of cross-attention the source's, of self-attention those that the decoder reads", () => {
    const cross = sourcesOf(text(), katze, "decoder.1.cross_attention.3") ?? [];
    expect(cross.map((one) => one.word)).toEqual(["the", "small", "dog", "sees", "a", "cat", ".", "</s>"]);
    expect(cross.map((one) => one.score)).toEqual([0, 0, 0.25, 0, 0, 9, 0, 0]);
    const own = sourcesOf(text(), katze, "decoder.1.self_attention.2") ?? [];
    expect(own.map((one) => one.word)).toEqual(["<s>", "der", "kleine", "Hund", "sieht", "eine"]);
    expect(sourcesOf(text(), katze, "decoder.0.cross_attention.0")).toBeNull();
    expect(sourcesOf(text(), katze, "encoder.0.self_attention.0")).toBeNull();
  });

  it("show the mask that stands in the place of a word", () => {
    const of = structuredClone(encoder().page.runs[0]?.texts[1]) as Text; // [CLS] a man sleeps . [SEP]
    const its: Contributed = {
      ...katze,
      source_tokens: null,
      tokens: ["[CLS]", "a", "man", "[MASK]", ".", "[SEP]"],
      parts: [part("head", "encoder.0.self_attention.0", 0, 1, [0, 0.5, 0.5, 0, 0, 0])],
    };
    const words = (sourcesOf(of, its, "encoder.0.self_attention.0") ?? []).map((one) => one.word);
    expect(words).toEqual(["[CLS]", "a", "man", "[MASK]", ".", "[SEP]"]);
  });

  it("are put in words", () => {
    expect(summedInWords(text())).toBe("logit of “Katze”, 14.8");
    expect(summedInWords({ ...text(), contributions: { why: "One token." } })).toBe("");
    const cosine: Contributed = { ...katze, measure: "cosine", centred: false, answer: { text: "A cat." } };
    expect(summedInWords({ ...text(), contributions: cosine })).toBe("cosine to “A cat.”, 14.8");
    expect(headAddsInWords(run(), katze, "decoder.1.cross_attention.3")).toBe(
      "Cross-attention 1, head 3 adds 9.25 to the logit of “Katze”: number 1 of 5 heads by size.",
    );
    expect(headAddsInWords(run(), katze, "decoder.0.self_attention.0")).toBe(
      "Decoder 0, head 0 takes 0.500 from the logit of “Katze”: number 3 of 5 heads by size.",
    );
    expect(headAddsInWords(run(), katze, "encoder.0.self_attention.0")).toContain("is in the encoder");
    expect(meaningInWords(katze)).toContain("less the mean of all logits");
    expect(meaningInWords(cosine)).toContain("scales of the norms held");
    expect(meaningInWords(cosine)).not.toContain("mean of all logits");
  });

  it("have a view where a page has any, and a heading", () => {
    const made = page();
    expect(viewsOf(made)).not.toContain("contributions");
    (made.runs[0] as Run).texts[0] = text();
    expect(viewsOf(made)).toContain("contributions");
    const choice = { ...firstChoice(made), view: "contributions" as const };
    expect(heading(made, choice)).toEqual({ place: "Contributions", words: "logit of “Katze”, 14.8" });
    expect(whyNone(null, "Contributions")).toBe("Contributions were left out of this page.");
  });
});
