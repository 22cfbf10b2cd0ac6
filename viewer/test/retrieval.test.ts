import { describe, expect, it } from "vitest";
import type { Run } from "../src/page";
import {
  bestHeads,
  headCopiesInWords,
  meaningOfRetrieval,
  needInWords,
  placeTable,
  retrievalInWords,
  scoreBandsOf,
  scoresByPlace,
} from "../src/retrieval";
import { firstChoice, viewsOf } from "../src/state";
import { heading } from "../src/words";
import { facts } from "./given";
import { causal } from "./pages";

const page = () => structuredClone(causal().page);
const run = page().runs[0] as Run;
const best = "decoder.3.self_attention.5";

describe("retrieval heads", () => {
  it("are squares by layer", () => {
    const [band] = scoreBandsOf(run, facts);
    expect(band).toMatchObject({ kind: "decoder", columns: 2, hasFeedForward: false });
    expect(band?.layers.map(({ layer, heads }) => [layer, heads.map((one) => one.value)])).toEqual([
      [0, [0.05, 0]],
      [3, [0.95]],
    ]);
    expect(scoreBandsOf(run, { ...facts, heads: [] })).toEqual([]);
  });

  it("are put in words, with their rank", () => {
    expect(headCopiesInWords(run, facts, best)).toBe(
      "Decoder 3, head 5 copies 95 ± 7 % of the answers' tokens, and gives them 80 ± 3 % of its weight: " +
        "number 1 of 3 heads by score.",
    );
    expect(headCopiesInWords(run, facts, "decoder.0.self_attention.0")).toContain("copies 5.0 % of the answers'");
    expect(headCopiesInWords(run, facts, "decoder.2.self_attention.0")).toBe("This head was not measured.");
    expect(bestHeads(facts, 2).map(({ head }) => head)).toEqual([best, "decoder.0.self_attention.0"]);
    expect(meaningOfRetrieval(facts)).toContain("whatever the model would have said");
    const greedy = { ...facts, options: { ...facts.options, answers: "greedy" } };
    expect(meaningOfRetrieval(greedy)).toContain("writes its answer itself");
  });

  it("say what is lost while they are limited, alone or with those that share their keys", () => {
    expect(needInWords(facts, best)).toBe(
      "Limited to the first 4 keys and the last 64 in the rows of question and answer, as are heads 3 and 4, which " +
        "share its keys: log p of the answer falls by 5.35 ± 2.00 nats, and the loss of ordinary text rises by " +
        "0.020 ± 0.010 nats a token.",
    );
    expect(needInWords(facts, "decoder.0.self_attention.0")).toBe(
      "Limited to the first 4 keys and the last 64 in the rows of question and answer: log p of the answer rises by " +
        "0.250 nats.",
    );
    expect(needInWords(facts, "decoder.0.self_attention.1")).toBe("");
  });

  it("have their scores by length and depth, in order", () => {
    expect(placeTable(facts, scoresByPlace(facts, best))).toEqual({
      depths: [0, 1],
      rows: [
        { length: 64, values: [0.9, 1] },
        { length: 512, values: [0.9, 1] },
      ],
    });
    expect(placeTable(facts, scoresByPlace(facts, "nobody")).rows[0]?.values).toEqual([null, null]);
  });

  it("have a view where a page has any, and a heading", () => {
    const made = page();
    expect(viewsOf(made)).not.toContain("retrieval");
    (made.runs[0] as Run).retrieval = facts;
    expect(viewsOf(made)).toContain("retrieval");
    const choice = { ...firstChoice(made), view: "retrieval" as const };
    expect(heading(made, choice)).toEqual({
      place: "Retrieval",
      words: "Decoder 3, head 5 copies 95 % of the answers",
    });
    expect(retrievalInWords(run, null)).toBe("");
  });
});
