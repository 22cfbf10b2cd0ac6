import { afterEach, describe, expect, it, vi } from "vitest";
import { callOf, changeInWords, type HeadChanges, readChanges, withHeads, writeChanges } from "../src/live/changes";
import { compared } from "../src/live/compare";
import { Lanes, ranked } from "../src/live/lanes";
import type { About } from "../src/live/library";
import { merged } from "../src/live/live";
import { readPayload } from "../src/live/payload";
import { type Ask, type Question, questionFor, type Said } from "../src/live/question";
import { Session, whyNotHere } from "../src/live/session";
import {
  changesInWords,
  differenceInWords,
  headsOfLayer,
  leftOutInWords,
  liveBands,
  lossesOf,
  mostInWords,
  stateInWords,
  weightsInWords,
} from "../src/live/told";
import type { Run } from "../src/page";
import { choiceOf, firstChoice, fragmentOf, viewsOf } from "../src/state";
import { causal, translator } from "./pages";

const page = () => structuredClone(translator().page);
const run = page().runs[0] as Run;
const [first, second] = run.attentions.map((of) => `${of.name}.0`) as [string, string];

describe("changes of heads", () => {
  it("are a line that a link holds, and are read again", () => {
    const changes: HeadChanges = new Map<string, number | "uniform">([
      [second, "uniform"],
      [first, 0],
    ]);
    const line = writeChanges(changes);
    expect(line).toBe([`${first}=0`, `${second}=uniform`].sort().join(" "));
    expect(readChanges(line, run)).toEqual(changes);
    const choice = { ...firstChoice(page()), changes: line, typed: "zwei & drei = fünf\n#?", guess: first };
    expect(choiceOf(fragmentOf(choice), firstChoice(page()))).toEqual(choice);
  });

  it.each([
    "nonsense",
    `${first}=3`,
    `${first}=-1`,
    `${first}=1`,
    `${first}=1e9`,
    `${first}=all`,
    "encoder.9.x.0=0",
    "=0",
  ])("leave out what is wrong: %s", (line) =>
    expect(readChanges(`${line} ${second}=0.25`, run)).toEqual(new Map([[second, 0.25]])),
  );

  it("are what the library takes", () => {
    const changes: HeadChanges = new Map<string, number | "first">([
      ["a.0", 0],
      ["a.1", 0.5],
      ["b.0", "first"],
    ]);
    expect(callOf(changes)).toEqual({
      mute: ["a.0"],
      gate: [{ heads: "a.1", by: 0.5 }],
      replace: [{ heads: "b.0", rule: "first" }],
    });
    expect(withHeads(changes, ["a.0", "b.0"], null)).toEqual(new Map([["a.1", 0.5]]));
    expect(withHeads(changes, ["a.0", "a.1"], 1)).toEqual(new Map([["b.0", "first"]]));
    expect([0, 0.5, "uniform" as const].map(changeInWords)).toEqual([
      "left out",
      "times 0.5",
      "reads all words equally",
    ]);
  });

  it("are put in words, many of them in short", () => {
    expect(changesInWords(run, new Map([[first, 0]]))).toMatch(/^\S.* head 0 left out$/);
    const layer = headsOfLayer(run, first);
    expect(layer.length).toBe(run.attentions[0]?.heads);
    const many = new Map(run.attentions.flatMap((of) => headsOfLayer(run, `${of.name}.0`)).map((head) => [head, 0]));
    expect(changesInWords(run, many)).toContain(`and ${many.size - 3} heads more`);
    expect(headsOfLayer(run, "nowhere.0")).toEqual([]);
  });
});

describe("two texts", () => {
  const marks = (text: string, other: string) =>
    compared(text, other)
      .map(({ word, kept }) => (kept ? word : `*${word}*`))
      .join(" ");

  it.each([
    ["der kleine Hund sieht eine Katze .", "der kleine Mann sieht Katze .", "der kleine *Hund* sieht *eine* Katze ."],
    ["a b c", "a b c", "a b c"],
    ["a b c", "", "*a* *b* *c*"],
    ["", "a", ""],
    ["a a b", "a b b", "a *a* b"],
    ["x b y b z", "b z", "*x* *b* *y* b z"],
  ])("are compared word by word: %s | %s", (text, other, wanted) => expect(marks(text, other)).toBe(wanted));

  it("of many words are compared at their ends", () => {
    const long = Array.from({ length: 500 }, (_, i) => `w${i}`);
    const other = [...long.slice(0, 3), "x", ...long.slice(4)];
    expect(compared(long.join(" "), other.join(" ")).filter(({ kept }) => !kept)).toEqual([
      { word: "w3", kept: false },
    ]);
  });
});

const said = (text: string, scores: number[], more: Partial<Said> = {}): Said => ({
  text,
  tokens: scores.map((log_probability, i) => ({ label: i === 1 ? "##n" : `▁${i}`, log_probability })),
  next: [],
  similarity: null,
  remarks: [],
  ...more,
});

describe("the live page in words", () => {
  it("says what each word of the whole model has lost", () => {
    const whole = said("0n 2", [-1, -2, -0.5]);
    expect(lossesOf(whole, said("other", [-1.5, -2, -0.25]))).toEqual([
      { word: "0", apart: true, kept: false, score: -0.5 },
      { word: "##n", apart: false, kept: false, score: 0 },
      { word: "2", apart: true, kept: false, score: 0.25 },
    ]);
    expect(lossesOf(whole, null).map(({ score }) => score)).toEqual([0, 0, 0]);
    const apart = (...labels: string[]) =>
      lossesOf({ ...whole, tokens: labels.map((label) => ({ label, log_probability: -1 })) }, null).map(
        (one) => one.apart,
      );
    expect(apart("der", "Hund", ".", "</s>")).toEqual([true, true, true, true]);
    expect(apart("un", "##happ", "##y", "cat")).toEqual([true, false, false, true]);
    expect(apart("ĠPar", "is", ".", "</s>")).toEqual([true, false, false, true]);
    expect(mostInWords(lossesOf(whole, said("other", [-1.5, -2, -0.25])))).toBe("0 −0.500, 2 0.250");
    expect(mostInWords(lossesOf(whole, whole))).toBe("");
    expect(differenceInWords("log p", -2, null)).toBe("log p: −2.00");
    expect(differenceInWords("log p", -2, -5)).toBe("log p: −2.00, with your changes −5.00, 3.00 less");
    expect(differenceInWords("similarity", 0.5, 0.5)).toBe("similarity: 0.500, with your changes 0.500, the same");
  });

  it("ranks heads by what is lost, and tells of the guess", () => {
    const losses = new Map([
      [first, 0.5],
      [second, -2],
    ]);
    const leftOut = { losses, of: 2, guess: first };
    expect(ranked(leftOut).map(({ head }) => head)).toEqual([second, first]);
    expect(leftOutInWords(run, leftOut)).toMatch(
      /^Most changes without .*: it rises by 2\.00\. Your guess, .* is number 2 of 2: 0\.500\.$/,
    );
    const lost = { ...leftOut, losses: new Map([[first, 0.5]]), of: 1 };
    expect(leftOutInWords(run, lost)).toMatch(/^You guessed right\. Most is lost without .*: 0\.500\.$/);
    expect(leftOutInWords(run, { ...leftOut, guess: second })).toMatch(/^You guessed right\. /);
    expect(leftOutInWords(run, { ...leftOut, guess: "" })).not.toContain("guess");
    expect(leftOutInWords(run, { ...leftOut, of: 7 })).toBe("2 of 7 heads");
    const values = liveBands(run, leftOut, new Map([[first, 0]])).flatMap(({ layers }) =>
      layers.flatMap(({ heads }) => heads),
    );
    expect(values.find(({ name }) => name === second)?.value, "as the number changes").toBe(2);
    expect(values.filter(({ framed }) => framed).map(({ name, framed }) => [name, framed])).toEqual([
      [first, "left out"],
    ]);
    expect(values.length).toBe(run.attentions.reduce((sum, of) => sum + of.heads, 0));
  });

  it("says how far it is, and how near its weights are", () => {
    expect(stateInWords({ is: "opening", share: 0.25 }, 0)).toContain("25 %");
    expect(stateInWords({ is: "failed", why: "no." }, 0)).toBe("no. The page shows what was recorded.");
    expect(stateInWords({ is: "ready", about: about("causal") }, 12.4)).toContain("12 ms");
    expect(weightsInWords({ as: "file", difference: null, cosine: null, texts: 0 })).toBe(
      "The model in this page has the weights of its file, not rounded.",
    );
    expect(weightsInWords({ as: "float16", difference: 0.00401, cosine: null, texts: 1 })).toBe(
      "The model's weights are rounded to 16 bits a number: on the text that was recorded, logits differ by at most " +
        "0.41 % of their range from those of the file.",
    );
    expect(weightsInWords({ as: "int8", difference: null, cosine: 0.999519, texts: 100 })).toBe(
      "The model's matrices are rounded to 8 bits a number: on 100 texts, vectors have a cosine of at least 0.99951 " +
        "with those of the file.",
    );
  });
});

const about = (kind: About["kind"], predicts = true): About => ({
  type: "made-up",
  kind,
  predicts,
  parameters: 7,
  longest: 13,
  attentions: [],
  remarks: [],
});

describe("what a model is asked", () => {
  const asked: [string, object][] = [];
  const answers: { [call: string]: unknown } = {
    translate: { translations: [[{ text: "a b", score: -1, log_probability: -1 }]], remarks: ["one"] },
    generate: { texts: [" b c"], remarks: [] },
    score: { log_probabilities: [[-1, -2, -4]], labels: [["x", "y", "z"]], remarks: [] },
    next: { words: [[{ word: " b", probability: 0.5 }]], remarks: [] },
    tokens: { ids: [5, 6], labels: [], offsets: [] },
    embed: { vectors: [], similarities: [[1, 0.25]], remarks: [] },
  };
  const ask = ((call: string, given: object) => {
    asked.push([call, given]);
    return Promise.resolve(answers[call]);
  }) as Ask;

  it("is, of a translator, its translation and the words' probabilities", async () => {
    const question = questionFor(about("translator"), ask);
    const whole = await question.whole("t", "");
    expect(whole).toMatchObject({ text: "a b", remarks: ["one"], similarity: null });
    expect(whole.tokens.map(({ label }) => label)).toEqual(["x", "y", "z"]);
    asked.length = 0;
    expect(await question.value("t", "", whole, { mute: ["h"] })).toBe(-7);
    expect(asked).toEqual([["score", { texts: ["t"], targets: ["a b"], changes: { mute: ["h"] } }]]);
  });

  it("is, of a causal model, what follows, without the reader's own words", async () => {
    const whole = await questionFor(about("causal"), ask).whole("t", "");
    expect(whole.tokens.map(({ label }) => label)).toEqual(["y", "z"]);
    expect(whole.next).toEqual([{ word: " b", probability: 0.5 }]);
  });

  it("is, of an encoder, how alike two texts are", async () => {
    const question = questionFor(about("encoder", false), ask);
    expect(question.compares).toBe(true);
    expect((await question.whole("t", "u")).similarity).toBe(0.25);
  });

  it("is, of a model for masked words, what stands in their places", async () => {
    const word = (id: number, word: string, probability: number) => ({ id, word, probability });
    answers.fill = { masks: [[[word(7, "dog", 0.5), word(8, "cat", 0.25)], [word(9, "sees", 1)]]], remarks: [] };
    const question = questionFor(about("encoder", true), ask);
    const whole = await question.whole("the [MASK] [MASK]", "");
    expect(whole).toMatchObject({ text: "dog sees", tokens: [{ label: "dog", log_probability: Math.log(0.5) }, {}] });
    expect(whole.next.map((one) => one.word)).toEqual(["dog", "cat"]);
    answers.fill = { masks: [[[word(8, "cat", 0.5), word(7, "dog", 0.25)], [word(1, "x", 0.5)]]], remarks: [] };
    expect(await question.value("t", "", whole, {})).toBeCloseTo(Math.log(0.25) + Math.log(0.5), 12);
    expect((await question.changed("t", "", whole, {})).text).toBe("cat x");
  });
});

describe("the lanes", () => {
  const heads = ["a.0", "a.1", "a.2"];
  /** A model whose number falls by one for each head that is left out, and by 9 for a.1. */
  const question = (waits: Promise<void>[] = []): Question => ({
    measure: "log p",
    compares: false,
    whole: async (text) => {
      await waits.shift();
      if (text === "bad") throw new Error("no such words; take others");
      return said(`said of ${text}`, [-1]);
    },
    changed: async (text, _, __, { mute = [] }) => said(`changed ${text}`, [-1 - mute.length]),
    value: async (_, __, ___, { mute = [] }) => -1 - mute.length - (mute.includes("a.1") ? 9 : 0),
  });
  const nothing: HeadChanges = new Map();

  it("answer, with changes and without", async () => {
    let told = 0;
    const lanes = new Lanes(question(), () => told++);
    await lanes.ask({ text: "t", second: "", changes: nothing });
    expect([lanes.whole?.text, lanes.changed, told]).toEqual(["said of t", null, 1]);
    await lanes.ask({ text: "t", second: "", changes: nothing });
    expect(told).toBe(1);
    await lanes.ask({ text: "t", second: "", changes: new Map([["a.0", 0]]) });
    expect(lanes.changed?.tokens).toEqual([{ label: "▁0", log_probability: -2 }]);
    await lanes.leaveEachOut(heads, "a.2");
    expect(lanes.leftOut).toEqual({
      losses: new Map([
        ["a.0", 1],
        ["a.1", 10],
        ["a.2", 1],
      ]),
      of: 3,
      guess: "a.2",
    });
    const { leftOut } = lanes;
    await lanes.ask({ text: "t", second: "", changes: new Map([["a.1", 0]]) });
    expect(lanes.leftOut, "of the whole model, whatever is changed").toBe(leftOut);
    await lanes.ask({ text: "u", second: "", changes: new Map([["a.1", 0]]) });
    expect(lanes.leftOut).toBeNull();
  });

  it("tell of the newest text alone", async () => {
    let open = () => {};
    const slow = new Promise<void>((resolve) => {
      open = resolve;
    });
    const lanes = new Lanes(question([slow]), () => {});
    const old = lanes.ask({ text: "old", second: "", changes: nothing });
    await lanes.ask({ text: "new", second: "", changes: nothing });
    open();
    await old;
    expect(lanes.whole?.text).toBe("said of new");
  });

  it("answer of the newest text where heads are changed before it is answered", async () => {
    let open = () => {};
    const slow = new Promise<void>((resolve) => {
      open = resolve;
    });
    const lanes = new Lanes(question([Promise.resolve(), slow]), () => {});
    await lanes.ask({ text: "old", second: "", changes: nothing });
    const unchanged = lanes.ask({ text: "new", second: "", changes: nothing });
    await lanes.leaveEachOut(heads, "");
    expect(lanes.leftOut).toBeNull();
    await lanes.ask({ text: "new", second: "", changes: new Map([["a.0", 0]]) });
    open();
    await unchanged;
    expect([lanes.whole?.text, lanes.changed?.text]).toEqual(["said of new", "changed new"]);
  });

  it("say why a text is refused, and answer the next", async () => {
    const lanes = new Lanes(question(), () => {});
    await lanes.ask({ text: "bad", second: "", changes: nothing });
    expect([lanes.why, lanes.whole]).toEqual(["no such words; take others", null]);
    await lanes.ask({ text: "good", second: "", changes: nothing });
    expect([lanes.why, lanes.whole?.text]).toEqual(["", "said of good"]);
  });
});

describe("a browser", () => {
  afterEach(() => void vi.unstubAllGlobals());

  it("runs the model where it has vectors and workers", () => {
    vi.stubGlobal("Worker", class {});
    expect(whyNotHere()).toBeNull();
  });

  it("says what it lacks", () => {
    expect(whyNotHere()).toMatch(/starts no worker/);
    vi.stubGlobal("WebAssembly", { validate: () => false });
    expect(whyNotHere()).toMatch(/no WebAssembly with vectors/);
  });

  it("that allows no worker shows what was recorded", () => {
    vi.stubGlobal(
      "Worker",
      class {
        constructor() {
          throw new Error("not here");
        }
      },
    );
    const elements = { payload: readPayload(JSON.stringify(payload)), script: "", parts: [] };
    const session = new Session(elements, () => {});
    expect(session.state).toMatchObject({ is: "failed", why: expect.stringMatching(/starts no worker/) });
    return expect(session.ask("about", {})).rejects.toThrow(/starts no worker/);
  });
});

const payload = {
  schema: 1,
  name: "demo",
  files: [
    { name: "multihead.wasm", bytes: 5, parts: 1 },
    { name: "config.json", bytes: 3, parts: 2 },
  ],
  weights: { as: "file", difference: null, cosine: null, texts: 0 },
  page: {},
  run: { importance: true },
};

describe("a live page", () => {
  it("has a view of its own, and opens there", () => {
    const live = { ...page(), live: true };
    expect(viewsOf(live)[0]).toBe("live");
    expect(firstChoice(live).view).toBe("live");
    expect(viewsOf(page())).not.toContain("live");
  });

  it("keeps what was measured on other texts than its own", () => {
    const recorded = page();
    const made = structuredClone(causal().page);
    const [before, after] = [recorded.runs[0] as Run, made.runs[0] as Run];
    after.evidence.of = before.evidence.of;
    expect(merged(recorded, made).runs[0]?.evidence).toBe(after.evidence);
    before.evidence.of = "a corpus";
    const both = merged(recorded, made);
    expect(both.runs[0]).toMatchObject({ evidence: before.evidence, hash: before.hash, texts: after.texts });
    expect(both.runs[0]?.evidence.ablation, "of the page's own text").toBe(after.evidence.ablation);
    expect(both.live).toBe(true);
  });

  it("says what it holds", () => {
    const { schema, ...rest } = payload;
    expect(readPayload(JSON.stringify(payload))).toEqual(rest);
    expect(schema).toBe(1);
  });
  it.each([
    ["no JSON", "{", "is not JSON"],
    ["another schema", JSON.stringify({ ...payload, schema: 7 }), "schema 7, and this page reads 1"],
    ["no model", JSON.stringify({ ...payload, files: [] }), "holds no model"],
    ["no files", JSON.stringify({ ...payload, files: undefined }), "live.files is missing"],
    [
      "a wrong size",
      JSON.stringify({ ...payload, files: [{ name: "a", bytes: -1, parts: 1 }] }),
      "live.files[0].bytes is",
    ],
  ])("of which %s is told in a line", (_, json, wanted) => expect(() => readPayload(json)).toThrow(wanted));
});
