import { describe, expect, it } from "vitest";
import { cellInWords, choiceOfCell, focusOf, lensInWords, lensTableOf } from "../src/lens";
import type { LensedValue, LensedVectors, LensedWords } from "../src/lensed";
import type { Run, Text } from "../src/page";
import { firstChoice, viewsOf, type Choice } from "../src/state";
import { causal, encoder, translator } from "./pages";

const word = (token: string, probability: number) => ({ token, probability, logit: null });
const value = (site: string, best: [string, number][], rank: number, probability: number): LensedValue => ({
  site,
  best: best.map(([token, p]) => word(token, p)),
  predicted: { rank, log_probability: Math.log(probability), logit: null },
});

/** Of "The small dog", at whose last token the model says " sees" in the end. */
const words: LensedWords = {
  says: "words",
  scores: null,
  positions: [
    { position: 0, token: "The", actual: { token: "▁small" }, predicted: { token: "▁dog" } },
    { position: 1, token: "▁small", actual: { token: "▁dog" }, predicted: { token: "▁dog" } },
    { position: 2, token: "▁dog", actual: null, predicted: { token: "▁sees" } },
  ],
  values: [
    value("decoder.embeddings", [["The", 0.99]], 812, 0.00004),
    value("decoder.embeddings", [["▁small", 0.9]], 90, 0.002),
    value("decoder.embeddings", [["▁dog", 1]], 7, 0.01),
    value("decoder.0.output", [["▁big", 0.4]], 3, 0.05),
    value("decoder.0.output", [["▁dog", 0.4]], 1, 0.4),
    value("decoder.0.output", [["▁runs", 0.3]], 2, 0.2),
    value("decoder.1.output", [["▁dog", 0.25]], 1, 0.25),
    value("decoder.1.output", [["▁dog", 0.5]], 1, 0.5),
    value(
      "decoder.1.output",
      [
        ["▁sees", 0.64],
        ["▁runs", 0.2],
      ],
      1,
      0.64,
    ),
  ],
};

const vectors: LensedVectors = {
  says: "vectors",
  second: "A cat.",
  values: [
    { site: "encoder.embeddings", own: 0.25, second: -0.125 },
    { site: "encoder.0.output", own: 1, second: 0.5 },
  ],
};

const labels: LensedWords = {
  says: "labels",
  scores: "softmax",
  positions: [{ position: null, token: null, actual: null, predicted: { token: "POSITIVE" } }],
  values: [
    value(
      "encoder.embeddings",
      [
        ["NEGATIVE", 0.75],
        ["POSITIVE", 0.25],
      ],
      2,
      0.25,
    ),
    value(
      "encoder.0.output",
      [
        ["POSITIVE", 0.875],
        ["NEGATIVE", 0.125],
      ],
      1,
      0.875,
    ),
  ],
};

const { page } = causal();
const run = page.runs[0] as Run;
const of: Text = { ...(run.texts[0] as Text), lens: words };
const choice: Choice = { ...firstChoice(page), view: "lens", query: 2 };

describe("the lens", () => {
  it("is a table of words: the darker, the more probable is what the model says in the end", () => {
    const table = lensTableOf(words);
    expect(table.columns).toEqual(["The", "small", "dog"]);
    expect(table.rows.map((row) => row.name)).toEqual(["embed", "0", "1"]);
    expect(table.rows.map((row) => row.cells.map((cell) => cell.text))).toEqual([
      ["The", "small", "dog"],
      ["big", "dog", "runs"],
      ["dog", "dog", "sees"],
    ]);
    expect(table.rows[1]?.cells.map((cell) => cell.shade)).toEqual([
      expect.closeTo(0.05),
      expect.closeTo(0.4),
      expect.closeTo(0.2),
    ]);
    expect(table.actual).toEqual(["small", "dog", null]);
  });

  it("says a cell in words", () => {
    expect(cellInWords(lensTableOf(words), { row: 2, column: 2 })).toBe(
      "After layer 1, the last, at dog: sees 64 %, runs 20 %. " +
        "“sees”, which the model says in the end, is number 1 here, with 64 %.",
    );
    expect(cellInWords(lensTableOf(words), { row: 0, column: 0 })).toBe(
      "The embeddings, at The: The 99 %. “dog”, which the model says in the end, is number 812 here, with 4.0e−5.",
    );
    expect(cellInWords(lensTableOf(vectors), { row: 0, column: 1 })).toBe(
      "The embeddings: cosine with “A cat.” −0.125",
    );
  });

  it("follows the token in focus, and brings a chosen one into focus", () => {
    expect(focusOf(run, of, words, choice)).toEqual({ row: 2, column: 2 });
    expect(focusOf(run, of, words, { ...choice, query: 1, cell: "lens:0:2" })).toEqual({ row: 0, column: 1 });
    expect(focusOf(run, of, words, { ...choice, query: 9, cell: "lens:77:77" })).toEqual({ row: 2, column: 2 });
    expect(choiceOfCell(run, of, words, { row: 1, column: 0 }, choice.head)).toEqual({
      cell: "lens:1:0",
      query: 0,
      key: null,
    });
  });

  it("of a translation reads what its decoder reads, which a head of the encoder does not", () => {
    const made = translator().page.runs[0] as Run;
    const text = { ...(made.texts[0] as Text), lens: words };
    const at = (head: string) => focusOf(made, text, words, { ...choice, head, query: 1, cell: "lens:1:0" });
    expect(at("decoder.0.self_attention.0")).toEqual({ row: 1, column: 1 });
    expect(at("encoder.0.self_attention.0")).toEqual({ row: 1, column: 0 });
    expect(choiceOfCell(made, text, words, { row: 1, column: 2 }, "encoder.0.self_attention.0")).toEqual({
      cell: "lens:1:2",
    });
  });

  it("says from which layer on the model says what it says in the end", () => {
    const said = (query: number) => lensInWords(run, of, { ...choice, query });
    expect(said(1)).toBe("at “small”, “dog” comes first from layer 0 on");
    expect(said(2)).toBe("at “dog”, “sees” comes first only after the last layer");
    expect(lensInWords(run, { ...of, lens: labels }, choice)).toBe("“POSITIVE” comes first only after the last layer");
    expect(lensInWords(run, { ...of, lens: vectors }, choice)).toBe("the text's vector after each layer");
    expect(lensInWords(run, { ...of, lens: { why: "Too long." } }, choice)).toBe("");
  });

  it("of a classifier has a column for each label, and of vectors one for each cosine", () => {
    const table = lensTableOf(labels);
    expect(table.columns).toEqual(["POSITIVE", "NEGATIVE"]);
    expect(table.rows.map((row) => row.cells.map((cell) => cell.text))).toEqual([
      ["25 %", "75 %"],
      ["88 %", "13 %"],
    ]);
    expect(table.rows[0]?.cells.map((cell) => cell.shade)).toEqual([0.25, 0.75]);
    expect(focusOf(run, of, labels, choice)).toEqual({ row: 1, column: 0 });
    expect(focusOf(run, of, vectors, choice)).toEqual({ row: 1, column: 1 });
    const cosines = lensTableOf(vectors);
    expect(cosines.rows.map((row) => row.cells.map((cell) => cell.shade))).toEqual([
      [0.25, -0.125],
      [1, 0.5],
    ]);
    expect(lensTableOf({ ...vectors, second: null }).columns).toEqual(["cosine with its own vector"]);
  });

  it("has a view where a page has any", () => {
    const made = structuredClone(encoder().page);
    expect(viewsOf(made)).not.toContain("lens");
    ((made.runs[0] as Run).texts[1] as Text).lens = vectors;
    expect(viewsOf(made)).toContain("lens");
  });
});
