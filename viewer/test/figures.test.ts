import { describe, expect, it } from "vitest";
import { bestRelation, columnsOf, relationsOf } from "../src/evidence";
import { bandsOf } from "../src/finder";
import { courseOf } from "../src/draw/lines";
import type { Run } from "../src/page";
import type { HeadStats, Relation } from "../src/reports";
import { ordered, tabbed } from "../src/views/table";
import { coursesOf } from "../src/views/time";
import { headInWords, wordsOfRelation } from "../src/words";
import { encoder, several, translator } from "./pages";

const run = (): Run => structuredClone(encoder().page.runs[0] as Run);
const relation = (head: number, name: string, score: number, more: Partial<Relation> = {}): Relation => ({
  head: `encoder.0.self_attention.${head}`,
  relation: name,
  direction: "to_head",
  score,
  baseline: 0.4,
  support: 500,
  gain_half_width: 0.02,
  ...more,
});

/** A head of which nothing was measured. */
const unknown = (head: string, more: Partial<HeadStats> = {}): HeadStats => ({
  head,
  entropy_share: null,
  distance: null,
  at_offset: {},
  most_at_offset: {},
  on_first: null,
  on_separators: null,
  on_rarest: null,
  induction: null,
  role: null,
  ...more,
});

describe("figures", () => {
  it("are read from what the tool says", () => {
    const ids = columnsOf(run()).map((one) => one.id);
    expect(ids).toEqual(["previous", "same", "next", "sink", "separators", "entropy", "distance"]);
    expect(columnsOf({ ...run(), evidence: { ...run().evidence, stats: null } })).toEqual([]);
    expect(columnsOf({ ...run(), evidence: { ...run().evidence, stats: { heads: [unknown("a.0")] } } })).toEqual([]);
  });

  it("name a head by the relation that is surest", () => {
    const made = run();
    made.evidence.relations = {
      best: [],
      relations: [
        relation(2, "det", 0.97),
        relation(2, "obj", 0.9, { gain_half_width: 0.5 }),
        relation(2, "all", 1),
        relation(2, "amod", 1, { direction: "read_by_head" }),
        relation(3, "obj", 0.41),
        relation(4, "det", 0.95, { support: 20 }),
        relation(5, "flat", 0.8, { direction: "to_dependent" }),
      ],
    };
    expect(headInWords(made, "encoder.0.self_attention.2")).toBe("article → noun, 97 %");
    expect(headInWords(made, "encoder.0.self_attention.5")).toBe("head → its flat, 80 %");
    expect(bestRelation(made, "encoder.0.self_attention.3")).toBeNull();
    expect(bestRelation(made, "encoder.0.self_attention.4")?.support).toBe(20);
    expect(relationsOf(made)[0]).toMatchObject({ id: "relation:all/to_head" });
    expect(relationsOf(made).find((one) => one.id === "relation:det/to_head")?.values.size).toBe(2);
    expect(wordsOfRelation("nsubj:pass", "to_dependent")).toBe("verb → subject");
  });

  it("name aligners and roles", () => {
    const made = structuredClone(translator().page.runs[0] as Run);
    made.evidence.alignment = {
      alignment_baseline: { accuracy: 0.3 },
      alignment: [
        { head: "decoder.1.cross_attention.0", query: "predicts", accuracy: 0.82 },
        { head: "decoder.1.cross_attention.0", query: "reads", accuracy: 0.1 },
        { head: "decoder.1.cross_attention.1", query: "reads", accuracy: 0.2 },
        { head: "decoder.1.cross_attention.mean", query: "reads", accuracy: 0.9 },
      ],
    };
    expect(headInWords(made, "decoder.1.cross_attention.0")).toBe("word to come → its source word, 82 %");
    expect(columnsOf(made).find((one) => one.id === "alignment")?.values.size).toBe(2);
    const roles = run();
    roles.evidence.stats = {
      heads: [
        unknown("a.0", { most_at_offset: { "-1": 0.9 } }),
        unknown("a.1", { on_first: 0.7 }),
        unknown("a.2", { distance: 4.26 }),
      ],
    };
    expect(["a.0", "a.1", "a.2"].map((head) => headInWords(roles, head))).toEqual([
      "each token → the one before, 90 %",
      "every token → the first one, 70 % of the weight",
      "4.3 tokens away on average",
    ]);
  });
});

describe("finder and table", () => {
  const made = run();
  const column = columnsOf(made).find((one) => one.id === "entropy") ?? null;

  it("keep layers, or put the best first and dim the others", () => {
    const plain = bandsOf(made.attentions, null, "", () => "");
    expect(plain).toHaveLength(1);
    expect(plain[0]?.heads.map((one) => one.name).slice(5, 7)).toEqual([
      "encoder.0.self_attention.5",
      "encoder.1.self_attention.0",
    ]);
    const heads = bandsOf(made.attentions, column, "", () => "")[0]?.heads ?? [];
    const values = heads.map((one) => one.value as number);
    expect(values).toEqual([...values].sort((a, b) => a - b));
    expect(heads[0]?.dim).toBe(false);
    expect(heads[heads.length - 1]?.dim).toBe(true);
    expect(
      bandsOf(made.attentions, null, "Article", (name) =>
        name.endsWith("2") ? "article → noun" : "",
      )[0]?.heads.filter((one) => !one.dim),
    ).toHaveLength(3);
    expect(bandsOf(translator().page.runs[0]?.attentions ?? [], null, "", () => "").map((band) => band.kind)).toEqual([
      "encoder",
      "decoder",
      "cross",
    ]);
  });

  it("sort and copy", () => {
    expect(ordered(made, column)[0]).toBe(bandsOf(made.attentions, column, "", () => "")[0]?.heads[0]?.name);
    const rows = tabbed(made, columnsOf(made), ordered(made, null)).split("\n");
    expect(rows).toHaveLength(19);
    expect(new Set(rows.map((row) => row.split("\t").length))).toEqual(new Set([9]));
  });
});

describe("time", () => {
  it("follows a figure through checkpoints", () => {
    const runs = several("time", 4).page.runs;
    const courses = coursesOf(runs, "entropy");
    const course = courses?.of("encoder.0.self_attention.3");
    expect(course).toMatchObject({ low: 0, high: 1 });
    expect(course?.values[0]).toBe(1);
    expect(course?.values[3]).toBeLessThan(0.5);
    expect(coursesOf(runs, "nothing")).toBeNull();
    expect(courseOf({ values: [0, 1, null, 0.5], low: 0, high: 1 }, 1, 32, 12)).toEqual({
      d: "M2,10L11.3,2M30,6Z",
      x: expect.closeTo(11.33, 1),
      y: 2,
    });
  });
});
