import { describe, expect, it } from "vitest";
import { readAttribution } from "../src/attributed";
import { readContributions } from "../src/contributed";
import { readLens } from "../src/lensed";
import { readAligners, readCircuit, readGiven, readRetrieval } from "../src/given";
import { BadPage } from "../src/reader";
import { readEvidence } from "../src/reports";
import { facts, katzeAligners, katzeCircuit } from "./given";

type Fields = Record<string, unknown>;

/** What the tool prints of one head, with a few fields that the page does not show. */
const printed = {
  of: "9 sentences of x.txt",
  stats: {
    schema: 1,
    heads: [
      {
        head: "a.0",
        queries: 40,
        entropy_share: 0.8,
        distance: 3.8,
        at_offset: { "-1": 0.1, "+0": 0.2 },
        most_at_offset: { "-1": 0.3 },
        on_first: 0.1,
        on_separators: null,
        on_rarest: 0.06,
        role: null,
      },
    ],
  },
  similar: {
    kinds: [{ queries: 40, heads: [{ head: "a.0", nearest: [{ head: "a.1", divergence: 0.17, ratio: null }] }] }],
  },
  relations: {
    best: [],
    relations: [
      {
        head: "a.0",
        relation: "det",
        direction: "to_head",
        score: 0.97,
        baseline: 0.4,
        support: 131,
        gain_half_width: null,
        on_half: [0.9, 1],
      },
    ],
  },
  alignment: {
    alignment: [{ head: "b.0", query: "predicts", accuracy: 0.8 }],
    alignment_baseline: { offset: 0, accuracy: 0.6 },
  },
  where: {
    heads: [
      {
        head: "a.0",
        strongest: [
          {
            line: 574,
            strength: 0.99,
            query: { token: "recently", word: "recently", begin: 0, end: 8 },
            key: { token: "but", word: "but", begin: 32, end: 35 },
            text: "recently old combs were black , but",
          },
        ],
        key_tokens: [{ token: "the", id: 4, share: 0.17, lift: 1.9 }],
        query_tokens: [],
        alike: [{ head: "a.1", agreement: 0.23, by_chance: 0.1 }],
      },
    ],
  },
  circuits: {
    circuits: [
      {
        head: "a.0",
        query_key: { effective_rank: 20.3, norm: 3.7, singular_values: [1.7] },
        value_output: { effective_rank: 21.3, norm: 2.6, singular_values: [1] },
        copying: null,
      },
    ],
    compositions: [{ from: "a.0", to: "a.1", part: "keys", strength: 0.4, random: 0.1 }],
  },
  importance: {
    score: "translation",
    sentences: 9,
    heads: [{ head: "a.0", rank: 1, importance: 0.6, importance_half_width: 0.1 }],
  },
  ablation: {
    score: "translation",
    sentences: 1,
    heads: [{ head: "a.0", rank: 1, importance: 2.8, importance_half_width: null }],
  },
};

const attributed = {
  explained: "log-probability",
  position: 5,
  token: "Katze",
  score: -0.1,
  replacement: "<unk>",
  replaced_score: -16.5,
  tokens: [{ side: "source", id: 4, token: "the", begin: 0, end: 3, kept: false, scores: { rollout: 0.1 } }],
};

const contributed = {
  measure: "logit",
  centred: true,
  answer: { text: "Katze", token: "Katze", id: 3, tokens: 1 },
  score: 26.2,
  tokens: ["der"],
  parts: [{ name: "a.0", kind: "head", layer: 0, sum: 0.1, positions: null, sources: [0.1] }],
};

const lensed = {
  says: "words",
  positions: [{ position: 0, token: "der", actual: null, predicted: { token: "Hund", id: 4 } }],
  values: [{ site: "decoder.embeddings", best: [{ token: "der", probability: 0.9 }], predicted: { rank: 2 } }],
};

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The paths of all fields of `value`, those of entries of lists too. */
function pathsOf(value: unknown): string[][] {
  if (Array.isArray(value)) return value.flatMap((one, i) => pathsOf(one).map((path) => [String(i), ...path]));
  if (!isFields(value)) return [];
  return Object.entries(value).flatMap(([name, one]) => [[name], ...pathsOf(one).map((path) => [name, ...path])]);
}

/** The value at a path, of which `change` gets the object that has it and the field's name. */
function changed<T>(value: T, path: string[], change: (of: Fields, name: string) => void): T {
  const copy = structuredClone(value);
  let at: unknown = copy;
  for (const name of path.slice(0, -1)) at = Array.isArray(at) ? at[Number(name)] : isFields(at) ? at[name] : null;
  const last = path.at(-1);
  if (!isFields(at) || last === undefined) throw new Error(`nothing at ${path.join(".")}`);
  change(at, last);
  return copy;
}

/** "heads[0].role" */
const written = (path: string[]) => path.map((name) => (/^\d+$/.test(name) ? `[${name}]` : `.${name}`)).join("");

function said(read: (value: unknown, where: string) => unknown, value: unknown): string {
  try {
    read(value, "e");
    return "read";
  } catch (error) {
    return error instanceof BadPage ? error.message : `no line: ${String(error)}`;
  }
}

describe("the reader of evidence", () => {
  it("gives what the page shows, and null where the tool says nothing", () => {
    const found = readEvidence(printed, "e");
    expect(printed).toMatchObject({ ...found, stats: {}, where: {} });
    expect(found.stats?.heads[0]).toMatchObject({ distance: 3.8, on_separators: null, induction: null, role: null });
    expect(found.stats?.heads[0]).not.toHaveProperty("queries");
    expect(found.where?.heads[0]?.strongest[0]).toMatchObject({ line: 574, key: { begin: 32, end: 35 }, source: null });
  });

  it("takes a page without some reports", () => {
    const none = { of: "", stats: null, similar: null, relations: null, alignment: null, where: null, circuits: null };
    expect(readEvidence(none, "e")).toEqual({ ...none, importance: null, ablation: null });
  });

  const found = readEvidence(printed, "e");
  const optional = ["e.importance", "e.ablation", "e.stats.heads[0].induction", "e.where.heads[0].strongest[0].source"];
  const paths = pathsOf(found).filter((path) => !optional.includes(`e${written(path)}`) && !path.includes("at_offset"));
  const needed = paths.filter((path) => !path.includes("most_at_offset") || path.at(-1) === "most_at_offset");

  it.each(needed.map((path) => [`e${written(path)}`, path] as const))(
    "says in a line that %s is missing",
    (at, path) => {
      const without = changed(printed, path, (of, name) => delete of[name]);
      expect(said(readEvidence, without)).toBe(`${at} is missing.`);
    },
  );

  it.each(paths.map((path) => [`e${written(path)}`, path] as const))("says in a line that %s is wrong", (at, path) => {
    const spoilt = changed(printed, path, (of, name) => {
      of[name] = true;
    });
    expect(said(readEvidence, spoilt)).toMatch(new RegExp(`^${at.replace(/[[\].+]/g, "\\$&")} is n.*\\.$`));
  });

  it("says which words a field may have", () => {
    const spoilt = changed(printed, ["alignment", "alignment", "0", "query"], (of, name) => {
      of[name] = "writes";
    });
    expect(said(readEvidence, spoilt)).toBe("e.alignment.alignment[0].query is none of predicts, reads.");
  });
});

describe("the reader of attributions", () => {
  it("gives the token or the text that is explained, or why there is none", () => {
    expect(readAttribution(attributed, "e")).toMatchObject({ token: "Katze", tokens: [{ scores: { rollout: 0.1 } }] });
    const cosine = { ...attributed, explained: "cosine", second: "A cat." };
    expect(readAttribution(cosine, "e")).toMatchObject({ explained: "cosine", second: "A cat." });
    const logit = { ...attributed, explained: "logit", label: "POSITIVE" };
    expect(readAttribution(logit, "e")).toMatchObject({ explained: "logit", label: "POSITIVE" });
    expect(readAttribution({ why: "One text." }, "e")).toEqual({ why: "One text." });
  });

  const paths = pathsOf(readAttribution(attributed, "e")).filter((path) => path.at(-1) !== "rollout");

  it.each(paths.map((path) => [`e${written(path)}`, path] as const))(
    "says in a line that %s is missing",
    (at, path) => {
      expect(
        said(
          readAttribution,
          changed(attributed, path, (of, name) => delete of[name]),
        ),
      ).toBe(`${at} is missing.`);
    },
  );

  it("says in a line what is wrong", () => {
    expect(said(readAttribution, [])).toBe("e is not an object.");
    expect(said(readAttribution, { ...attributed, explained: "loss" })).toBe(
      "e.explained is none of log-probability, logit, cosine.",
    );
    expect(said(readAttribution, { ...attributed, explained: "cosine" })).toBe("e.second is missing.");
    expect(said(readAttribution, { why: 3 })).toBe("e.why is not a text.");
  });
});

describe("the readers of contributions and of the lens", () => {
  it("give what the page shows, or why there is none", () => {
    expect(readContributions(contributed, "e")).toMatchObject({ answer: { text: "Katze" }, source_tokens: null });
    expect(readContributions({ why: "One token." }, "e")).toEqual({ why: "One token." });
    expect(readLens(lensed, "e")).toMatchObject({ says: "words", scores: null, values: [{ predicted: { rank: 2 } }] });
    const cosines = { says: "vectors", values: [{ site: "encoder.embeddings", own: 0.5 }] };
    expect(readLens(cosines, "e")).toEqual({
      says: "vectors",
      second: null,
      values: [{ site: "encoder.embeddings", own: 0.5, second: null }],
    });
    expect(readLens({ why: "Long." }, "e")).toEqual({ why: "Long." });
  });

  it.each(["measure", "centred", "answer", "score", "tokens", "parts"])("say in a line that %s is missing", (name) => {
    const without = changed(contributed, [name], (of, field) => delete of[field]);
    expect(said(readContributions, without)).toBe(`e.${name} is missing.`);
  });

  it("say in a line what is wrong", () => {
    const part = (name: string, to: unknown) =>
      changed(contributed, ["parts", "0", name], (of, field) => {
        of[field] = to;
      });
    expect(said(readContributions, part("kind", "layer"))).toMatch(/^e\.parts\[0\]\.kind is none of embeddings/);
    expect(said(readContributions, part("sources", ["x"]))).toBe("e.parts[0].sources[0] is neither a number nor null.");
    expect(said(readLens, { ...lensed, says: "pictures" })).toBe("e.says is none of words, labels, vectors.");
    expect(said(readLens, { ...lensed, values: [] })).toBe("e has 0 values for 1 positions.");
    expect(said(readLens, { ...lensed, positions: [...lensed.positions, ...lensed.positions] })).toBe(
      "e has 1 values for 2 positions.",
    );
  });
});

describe("the readers of a circuit, of retrieval and of heads that align", () => {
  it("give what the page shows", () => {
    const { exact: _, ...rest } = katzeCircuit;
    expect(readCircuit({ ...rest, exact: [], schema: 1 }, "e")).toEqual({ ...katzeCircuit, exact: [] });
    expect(readRetrieval({ ...facts, trials: [] }, "e")).toEqual(facts);
    expect(readAligners({ ...katzeAligners, schema: 1 }, "e")).toEqual(katzeAligners);
    expect(readAligners({ ...katzeAligners, chosen: null }, "e").chosen).toBeNull();
    expect(readGiven({ aligners: katzeAligners }, "e")).toEqual({
      circuit: null,
      retrieval: null,
      aligners: katzeAligners,
    });
  });

  it.each(Object.keys(katzeCircuit).map((name) => [name]))("say in a line that %s of a circuit is missing", (name) => {
    const without = changed(katzeCircuit, [name], (of, field) => delete of[field]);
    expect(said(readCircuit, without)).toBe(`e.${name} is missing.`);
  });

  it.each(Object.keys(facts).map((name) => [name]))("say in a line that %s of retrieval is missing", (name) => {
    const without = changed(facts, [name], (of, field) => delete of[field]);
    expect(said(readRetrieval, without)).toBe(`e.${name} is missing.`);
  });

  it.each(
    (["", "alignment.0", "alignment_baseline", "chosen"] as const).flatMap((place) => {
      const path = place.split(".").filter(Boolean);
      const of = path.reduce<unknown>((found, name) => (found as Fields)[name], katzeAligners);
      return Object.keys(of as object).map((name): [string[]] => [[...path, name]]);
    }),
  )("say in a line that %s of heads that align is missing", (path) => {
    const without = changed(katzeAligners, path, (of, field) => delete of[field]);
    expect(said(readAligners, without)).toBe(`e${written(path)} is missing.`);
  });

  it("say in a line what is wrong", () => {
    const input = changed(katzeCircuit, ["edges", "0", "input"], (of, field) => {
      of[field] = "rows";
    });
    expect(said(readCircuit, input)).toMatch(/^e\.edges\[0\]\.input is none of queries, keys, values/);
    const scores = changed(facts, ["heads", "0", "by_place"], (of, field) => {
      of[field] = [1];
    });
    expect(said(readRetrieval, scores)).toBe("e: decoder.0.self_attention.0 has 1 scores for 4 places.");
    const query = changed(katzeAligners, ["chosen", "query"], (of, field) => {
      of[field] = "writes";
    });
    expect(said(readAligners, query)).toBe("e.chosen.query is none of predicts, reads.");
  });
});
