// What a live page asks its model, by the kind of model: what it says of the reader's text, with and without changes,
// and one number that tells how far the changes take it away from that.
import type { About, Answers, Changes, FilledWord } from "./library";

/** A call of the library's (web/README.md), wherever that runs. */
export type Ask = <Name extends keyof Answers>(call: Name, given: object) => Promise<Answers[Name]>;

/** A token that the whole model says, with log p of it in this run. */
export interface SaidToken {
  label: string;
  log_probability: number;
}

/** What a model says of a text. */
export interface Said {
  /** A translation, the text that follows, or the words in the place of masks; empty: it compares texts alone. */
  text: string;
  /** The tokens of what the whole model says. Empty: they have no probabilities. */
  tokens: SaidToken[];
  /** What else it might have said here, most probable first. */
  next: { word: string; probability: number }[];
  /** Of two texts; null: it says words. */
  similarity: number | null;
  remarks: string[];
}

export interface Question {
  /** What the number is: "log p of the translation", "similarity". */
  measure: string;
  /** A second text is compared with the first. */
  compares: boolean;
  /** What the model says as it is. */
  whole(text: string, second: string): Promise<Said>;
  /** What it says with these changes, its tokens being those of `whole`. */
  changed(text: string, second: string, whole: Said, changes: Changes): Promise<Said>;
  /** The number alone. */
  value(text: string, second: string, whole: Said, changes: Changes): Promise<number>;
}

/** How many tokens a text goes on for. */
const tokens = 12;
const words = 5;

const sum = (said: SaidToken[]): number => said.reduce((all, one) => all + one.log_probability, 0);

/** The number that a lane is measured by. */
export const numberOf = (said: Said): number => said.similarity ?? sum(said.tokens);

const nothing: Changes = {};

function translating(ask: Ask): Question {
  const translated = async (text: string, changes: Changes) => {
    const { translations, remarks } = await ask("translate", { texts: [text], changes, options: { beam_size: 1 } });
    return { text: translations[0]?.[0]?.text ?? "", remarks };
  };
  const scored = async (text: string, target: string, changes: Changes): Promise<SaidToken[]> => {
    const { log_probabilities, labels } = await ask("score", { texts: [text], targets: [target], changes });
    return joined(labels[0], log_probabilities[0]);
  };
  return {
    measure: "log p of the translation",
    compares: false,
    async whole(text) {
      const said = await translated(text, nothing);
      return { ...empty, ...said, tokens: await scored(text, said.text, nothing) };
    },
    async changed(text, _, whole, changes) {
      const said = await translated(text, changes);
      return { ...empty, ...said, tokens: await scored(text, whole.text, changes) };
    },
    value: async (text, _, whole, changes) => sum(await scored(text, whole.text, changes)),
  };
}

function goingOn(ask: Ask): Question {
  const generated = async (text: string, changes: Changes) => {
    const options = { max_new_tokens: tokens, search: "greedy" };
    const { texts, remarks } = await ask("generate", { texts: [text], changes, options });
    return { text: texts[0] ?? "", remarks };
  };
  /** The tokens behind those of the text, as many as there are in `said`. */
  const scored = async (text: string, said: string, changes: Changes): Promise<SaidToken[]> => {
    if (said === "") return [];
    const own = await ask("tokens", { text });
    const { log_probabilities, labels } = await ask("score", { texts: [text + said], changes });
    // The first token has none, so that the token with number n stands at n - 1.
    const begin = Math.max(0, own.ids.length - 1);
    return joined(labels[0], log_probabilities[0]).slice(begin);
  };
  const next = async (text: string, changes: Changes) =>
    (await ask("next", { texts: [text], changes, options: { words } })).words[0] ?? [];
  return {
    measure: "log p of what the model writes",
    compares: false,
    async whole(text) {
      const said = await generated(text, nothing);
      return { ...empty, ...said, tokens: await scored(text, said.text, nothing), next: await next(text, nothing) };
    },
    async changed(text, _, whole, changes) {
      const said = await generated(text, changes);
      return {
        ...empty,
        ...said,
        tokens: await scored(text, whole.text, changes),
        next: await next(text, changes),
      };
    },
    value: async (text, _, whole, changes) => sum(await scored(text, whole.text, changes)),
  };
}

function comparing(ask: Ask): Question {
  const similarity = async (text: string, second: string, changes: Changes) => {
    const { similarities, remarks } = await ask("embed", { texts: [text, second], changes });
    return { similarity: similarities[0]?.[1] ?? 0, remarks };
  };
  return {
    measure: "similarity",
    compares: true,
    whole: async (text, second) => ({ ...empty, ...(await similarity(text, second, nothing)) }),
    changed: async (text, second, _, changes) => ({ ...empty, ...(await similarity(text, second, changes)) }),
    value: async (text, second, _, changes) => (await similarity(text, second, changes)).similarity,
  };
}

/** How many words of the changed model are looked through for the whole model's: as many as the library gives. */
const mostWords = 256;

function fillingIn(ask: Ask): Question {
  const filled = async (text: string, changes: Changes, count: number) => {
    const { masks, remarks } = await ask("fill", { texts: [text], changes, options: { words: count } });
    return { masks: masks[0] ?? [], remarks };
  };
  /** Of each mask the whole model's word. One that is not among those looked through has at most the last one's. */
  const scored = async (text: string, whole: Said, changes: Changes) => {
    const { masks, remarks } = await filled(text, changes, mostWords);
    const said = whole.tokens.map(({ label }, i): SaidToken => {
      const words = masks[i] ?? [];
      const found = words.find(({ word }) => word === label) ?? words.at(-1);
      return { label, log_probability: Math.log(found?.probability ?? 0) };
    });
    return { masks, remarks, said };
  };
  const answer = (masks: FilledWord[][], remarks: string[], said: SaidToken[]): Said => ({
    ...empty,
    text: masks.map(([first]) => first?.word ?? "").join(" "),
    next: masks[0]?.slice(0, words) ?? [],
    tokens: said,
    remarks,
  });
  return {
    measure: "log p of the missing words",
    compares: false,
    async whole(text) {
      const { masks, remarks } = await filled(text, nothing, words);
      const said = masks.map(([first]) => ({
        label: first?.word ?? "",
        log_probability: Math.log(first?.probability ?? 0),
      }));
      return answer(masks, remarks, said);
    },
    async changed(text, _, whole, changes) {
      const { masks, remarks, said } = await scored(text, whole, changes);
      return answer(masks, remarks, said);
    },
    value: async (text, _, whole, changes) => sum((await scored(text, whole, changes)).said),
  };
}

const empty: Said = { text: "", tokens: [], next: [], similarity: null, remarks: [] };

function joined(labels: string[] = [], scores: number[] = []): SaidToken[] {
  return scores.map((log_probability, i) => ({ label: labels[i] ?? "", log_probability }));
}

/** What a model of this kind is asked. */
export function questionFor(about: About, ask: Ask): Question {
  if (about.kind === "translator") return translating(ask);
  if (about.kind === "causal") return goingOn(ask);
  return about.predicts ? fillingIn(ask) : comparing(ask);
}
