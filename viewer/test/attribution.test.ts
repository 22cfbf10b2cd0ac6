import { describe, expect, it } from "vitest";
import { explainedInWords, methodsOf, mostInWords, replacedInWords } from "../src/attribution";
import { columnsOf, importanceInWords } from "../src/evidence";
import type { Attributed, AttributedToken } from "../src/attributed";
import { whyNone } from "../src/none";
import type { Run, Text } from "../src/page";
import { viewsOf } from "../src/state";
import { fullScore } from "../src/written";
import { encoder, translator } from "./pages";

const token = (
  side: AttributedToken["side"],
  name: string,
  begin: number,
  end: number,
  scores: { [method: string]: number },
  kept = false,
): AttributedToken => ({ side, token: name, begin, end, kept, scores });

const cosine: Attributed = {
  explained: "cosine",
  second: "A cat.",
  score: 0.25,
  replacement: "[MASK]",
  replaced_score: 0.1,
  tokens: [],
};

/** "the small dog sees the unhappy cat .", of which a few tokens are weighed. */
function attributed(): Text {
  const of = structuredClone(encoder().page.runs[0]?.texts[0]) as Text;
  of.attribution = {
    explained: "log-probability",
    token: "cat",
    score: -0.5,
    replacement: "[MASK]",
    replaced_score: -4,
    tokens: [
      token("source", "[CLS]", 0, 0, { rollout: 0.5, "gradient-x-input": 9 }, true),
      token("source", "the", 0, 3, { rollout: 0.1, "gradient-x-input": -0.2 }),
      token("source", "un", 23, 25, { rollout: 0.3, "gradient-x-input": 0.1 }),
      token("source", "##happ", 25, 29, { rollout: 0.05, "gradient-x-input": 0.4 }),
    ],
  };
  return of;
}

describe("attribution", () => {
  it("names the label whose logit is explained", () => {
    const of = attributed();
    const { explained: _, ...score } = of.attribution as never as { explained: string };
    of.attribution = { ...score, explained: "logit", label: "POSITIVE", score: 4.25 } as never;
    expect(explainedInWords(of)).toBe("logit of “POSITIVE”, 4.25");
    expect(replacedInWords(of)).toBe("With every word replaced by [MASK] the logit is −4.00.");
  });

  it("is read from what the tool says, the tokens as they stand in the text", () => {
    const found = methodsOf(attributed());
    expect(found.map((one) => one.name)).toEqual(["rollout", "gradient-x-input"]);
    const parts = found[0]?.parts ?? [];
    expect(parts.map((part) => part.word)).toEqual(["[CLS]", "the", "un", "happ"]);
    expect(parts.map((part) => part.apart)).toEqual([true, false, true, false]);
    expect(parts.map((part) => part.kept)).toEqual([true, false, false, false]);
    expect(methodsOf({ ...attributed(), attribution: null })).toEqual([]);
    expect(methodsOf({ ...attributed(), attribution: { why: "One text." } })).toEqual([]);
  });

  it("measures colours by the tokens that are asked about", () => {
    const [rollout, gradient] = methodsOf(attributed());
    expect(fullScore(rollout?.parts ?? [])).toBe(0.3);
    expect(fullScore(gradient?.parts ?? [])).toBe(0.4);
    expect(mostInWords(gradient as never)).toBe("happ 0.400, the −0.200, un 0.100");
  });

  it("is put in words", () => {
    expect(explainedInWords(attributed())).toBe("log-probability of “cat”, −0.500 nats");
    expect(explainedInWords({ ...attributed(), attribution: cosine })).toBe("cosine to “A cat.”, 0.250");
    expect(explainedInWords({ ...attributed(), attribution: { why: "One text." } })).toBe("");
    expect(replacedInWords(attributed())).toBe(
      "With every word but the explained one replaced by [MASK] the log-probability is −4.00.",
    );
    expect(
      replacedInWords({
        ...attributed(),
        attribution: cosine,
      }),
    ).toBe("With every word replaced by [MASK] the cosine is 0.100.");
    expect(whyNone({ why: "One text." }, "Attributions")).toBe("One text.");
    expect(whyNone(attributed().attribution, "Attributions")).toBeNull();
    expect(whyNone(null, "Attributions")).toBe("Attributions were left out of this page.");
  });

  it("keeps a translation's tokens on their side", () => {
    const of = structuredClone(translator().page.runs[0]?.texts[0]) as Text;
    of.attribution = {
      ...cosine,
      tokens: [token("source", "dog", 10, 13, { flow: 1 }), token("target", "kleine", 4, 10, { flow: 2 })],
    };
    expect(methodsOf(of)[0]?.parts.map((part) => `${part.side} ${part.word}`)).toEqual(["source dog", "target kleine"]);
  });

  it("has a view where a page has any", () => {
    const { page } = encoder();
    (page.runs[0] as Run).texts[1] = attributed();
    expect(viewsOf(page)).toEqual(["text", "table", "head", "attribution", "walk"]);
  });
});

describe("importance", () => {
  const run = structuredClone(encoder().page.runs[0]) as Run;
  const head = "encoder.0.self_attention.2";
  run.evidence.of = "9 sentences of x.txt";
  run.evidence.ablation = {
    score: "vectors",
    sentences: 2,
    heads: [
      { head, rank: 3, importance: 0.0123, importance_half_width: 0.001 },
      { head: "a.0", rank: 1, importance: -0.5, importance_half_width: null },
    ],
  };
  run.evidence.importance = {
    score: "vectors",
    sentences: 9,
    heads: [{ head, rank: 1, importance: 0.2, importance_half_width: null }],
  };

  it("is a column of the finder", () => {
    const found = columnsOf(run).slice(0, 2);
    expect(found.map((one) => one.id)).toEqual(["importance", "ablation"]);
    expect(found[1]?.values.get(head)).toBe(0.0123);
    expect(found[1]?.about).toContain("cosine");
  });

  it("is said of a head in words", () => {
    expect(importanceInWords(run, head)).toEqual([
      "Without it the cosine of the text's vector to the whole model's falls by 0.012 ± 0.001 " +
        "on the 2 texts of this page, on average: rank 3 of 2.",
      "By the gradient of its gate on 9 sentences of x.txt: 0.200, rank 1 of 1.",
    ]);
    run.evidence.ablation = {
      score: "next-tokens",
      sentences: 1,
      heads: [{ head, rank: 1, importance: -2, importance_half_width: null }],
    };
    expect(importanceInWords(run, head)[0]).toBe(
      "Without it the log-probability of the text's tokens rises by 2.00 nats on this page's text: rank 1 of 1.",
    );
    expect(
      importanceInWords({ ...run, evidence: { ...run.evidence, ablation: null, importance: null } }, head),
    ).toEqual([]);
  });
});
