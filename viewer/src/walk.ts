// The steps of one attention in ten chapters, and the sums that their cells come from.
import { floatsAt } from "./decode";
import { figure, splitHead } from "./names";
import type { Walk, WalkStep } from "./page";

export interface Chapter {
  title: string;
  about: string;
  /** What is made here, in order; what it is made of is in the formulas. */
  steps: WalkStep[];
  /** Whether each head has its own. */
  split: boolean;
}

const plan: { title: string; about: string; split: boolean; of: RegExp }[] = [
  {
    title: "Rows",
    about: "A row of numbers for each token comes in. All heads read the same rows.",
    split: false,
    of: /^(x|memory)$/,
  },
  {
    title: "Queries",
    about: "Each head makes its own query of each row: what the token looks for.",
    split: true,
    of: /^q(_|$)/,
  },
  {
    title: "Keys",
    about: "And a key of each row that is read: what the token can be found by.",
    split: true,
    of: /^k(_|$)/,
  },
  { title: "Values", about: "And a value: what the token gives when it is read.", split: true, of: /^v(_|$)/ },
  {
    title: "Scores",
    about: "Every query meets every key: their product is the score.",
    split: true,
    of: /^(scores|mixed)/,
  },
  {
    title: "Scaled scores",
    about:
      "Scores are scaled, so that they do not grow with the size of the key, and some models cap them softly; " +
      "what stands to the right may be masked.",
    split: true,
    of: /^(scaled|capped|bias|biased|masked|factor)/,
  },
  {
    title: "Weights",
    about: "The softmax makes weights of the scores: each row adds up to 1.",
    split: true,
    of: /^weights/,
  },
  {
    title: "What the head gathers",
    about: "The values, added up by the weights: a row of the head's own for each token.",
    split: true,
    of: /^(z|normed|norm)_\d/,
  },
  {
    title: "Heads side by side",
    about: "What the heads have gathered is put side by side: here they meet again.",
    split: false,
    of: /^z$/,
  },
  { title: "Output", about: "One matrix for all heads makes the row that goes out.", split: false, of: /./ },
];

const learned = (step: WalkStep): boolean => step.formula.startsWith("learned");

export function headsOf(walk: Walk): number[] {
  return [...new Set(walk.steps.flatMap((step) => step.heads))].sort((a, b) => a - b);
}

/**
 * The head of the walk that a choice means: its own, or the one with the same number in the attention that is walked
 * through.
 */
export function walkedHead(walk: Walk, head: string): number {
  const heads = headsOf(walk);
  const wanted = splitHead(head)?.head ?? 0;
  return heads.includes(wanted) ? wanted : (heads[0] ?? 0);
}

/** The chapters of one head; those that its attention does not have are left out. */
export function chaptersOf(walk: Walk, head: number): Chapter[] {
  const rows: WalkStep[][] = plan.map(() => []);
  for (const step of walk.steps) {
    if (learned(step) || (step.heads.length > 0 && !step.heads.includes(head))) continue;
    rows[plan.findIndex((one) => one.of.test(step.name))]?.push(step);
  }
  return plan
    .map((one, i): Chapter => ({ title: one.title, about: one.about, steps: rows[i] as WalkStep[], split: one.split }))
    .filter((one) => one.steps.length > 0);
}

export interface Part {
  text: string;
  /** The step that the text names. */
  step: WalkStep | null;
  /** "k_0^T": its columns are meant. */
  turned: boolean;
}

/** A formula in words and symbols. */
export function partsOf(formula: string, walk: Walk): Part[] {
  const byName = new Map(walk.steps.map((step) => [step.name, step]));
  return formula
    .split(/([\s[\],|()]+)/)
    .filter((text) => text !== "")
    .map((text) => {
      const turned = text.endsWith("^T");
      return { text, step: byName.get(turned ? text.slice(0, -2) : text) ?? null, turned };
    });
}

export const kindOf = (name: string): "q" | "k" | "v" | "x" => {
  const found = /^(?:[wb]_)?([qkv])(?:_|$)/.exec(name);
  return (found?.[1] as "q" | "k" | "v" | undefined) ?? "x";
};

export interface Factor {
  step: WalkStep;
  /** Its cells that take part: a whole row, or a whole column, or one cell. */
  row: number | null;
  column: number | null;
}

export interface Sum {
  /** In words: what the numbers below are. */
  how: string;
  value: number;
  /** Products that are added up; of a softmax the exponentials. */
  terms: { left: number; right: number; product: number }[];
  plus: number | null;
  factors: Factor[];
}

export class Steps {
  private readonly byName: Map<string, WalkStep>;

  constructor(
    readonly walk: Walk,
    private readonly numbers: ArrayBuffer,
  ) {
    this.byName = new Map(walk.steps.map((step) => [step.name, step]));
  }

  get(name: string): WalkStep | undefined {
    return this.byName.get(name);
  }

  values(step: WalkStep): Float32Array {
    return floatsAt(this.numbers, step.numbers);
  }

  at(step: WalkStep, row: number, column: number): number {
    return this.values(step)[row * step.columns + column] as number;
  }

  /** How a cell came about. */
  sum(step: WalkStep, row: number, column: number): Sum {
    const value = this.at(step, row, column);
    return (
      this.product(step, row, column, value) ??
      this.scaled(step, row, column, value) ??
      this.capped(step, row, column, value) ??
      this.softmax(step, row, value) ??
      this.copied(step, row, column, value) ?? { how: step.formula, value, terms: [], plus: null, factors: [] }
    );
  }

  /** "A B", "A B^T", "A B + C" */
  private product(step: WalkStep, row: number, column: number, value: number): Sum | null {
    const found = /^(\S+) (\S+?)(\^T)?(?: \+ (\S+))?$/.exec(step.formula);
    const a = this.get(found?.[1] ?? "");
    const b = this.get(found?.[2] ?? "");
    if (!found || !a || !b) return null;
    const turned = found[3] !== undefined;
    if (a.columns !== (turned ? b.columns : b.rows) || row >= a.rows || column >= (turned ? b.rows : b.columns))
      return null;
    const [va, vb] = [this.values(a), this.values(b)];
    const terms = Array.from({ length: a.columns }, (_, n) => {
      const left = va[row * a.columns + n] as number;
      const right = vb[turned ? column * b.columns + n : n * b.columns + column] as number;
      return { left, right, product: left * right };
    });
    const factors: Factor[] = [
      { step: a, row, column: null },
      { step: b, row: turned ? column : null, column: turned ? null : column },
    ];
    const c = this.get(found[4] ?? "");
    const plusRow = c && c.rows > 1 ? row : 0;
    if (c) factors.push({ step: c, row: plusRow, column });
    return {
      how: `${terms.length} products, added up`,
      value,
      terms,
      plus: c ? this.at(c, plusRow, column) : null,
      factors,
    };
  }

  /** "0.25 A" or "A + B" cell by cell */
  private scaled(step: WalkStep, row: number, column: number, value: number): Sum | null {
    const found = /^(\S+) (\+ )?(\S+)$/.exec(step.formula);
    const b = this.get(found?.[3] ?? "");
    if (!found || !b) return null;
    const a = this.get(found[1] as string);
    const factors = [a, b]
      .filter((one): one is WalkStep => one !== undefined)
      .map((one): Factor => ({ step: one, row: one.rows > 1 ? row : 0, column }));
    const right = this.at(b, b.rows > 1 ? row : 0, column);
    if (found[2]) return a ? { how: "two numbers, added", value, terms: [], plus: right, factors } : null;
    const left = Number(found[1]);
    return Number.isFinite(left)
      ? { how: "the score, scaled", value, terms: [{ left, right, product: left * right }], plus: null, factors }
      : null;
  }

  /** "1.5 tanh(A / 1.5)" */
  private capped(step: WalkStep, row: number, column: number, value: number): Sum | null {
    const found = /^(\S+) tanh\((\S+) \/ \1\)$/.exec(step.formula);
    const a = this.get(found?.[2] ?? "");
    const cap = Number(found?.[1]);
    if (!a || !Number.isFinite(cap)) return null;
    const score = this.at(a, row, column);
    const right = Math.tanh(score / cap);
    return {
      how: `the cap, times tanh of ${figure(score)} / ${figure(cap)}`,
      value,
      terms: [{ left: cap, right, product: cap * right }],
      plus: null,
      factors: [{ step: a, row, column }],
    };
  }

  private softmax(step: WalkStep, row: number, value: number): Sum | null {
    const from = this.get(/^softmax of the rows of (\S+)/.exec(step.formula)?.[1] ?? "");
    if (!from) return null;
    const scores = this.values(from).subarray(row * from.columns, (row + 1) * from.columns);
    const most = scores.reduce((a, b) => Math.max(a, b), -Infinity);
    const terms = [...scores].map((score) => ({ left: score, right: 1, product: Math.exp(score - most) }));
    return {
      how: "e to the score, divided by the sum of these over the row",
      value,
      terms,
      plus: null,
      factors: [{ step: from, row, column: null }],
    };
  }

  /** What a formula names; of "[z_0 | z_1 | ... | z_11]" all pieces. */
  pieces(step: WalkStep): WalkStep[] {
    const named = partsOf(step.formula, this.walk).flatMap((part) => (part.step ? [part.step] : []));
    const first = named[0];
    if (!first || !step.formula.startsWith("[")) return named;
    const alike = new RegExp(`^${first.name.replace(/\d+$/, "")}\\d+$`);
    const all = this.walk.steps.filter((one) => alike.test(one.name));
    return all.length >= named.length ? all : named;
  }

  /** Pieces side by side, or numbers that stay but for a mask. */
  private copied(step: WalkStep, row: number, column: number, value: number): Sum | null {
    const named = this.pieces(step);
    if (named.length === 0 || named.some((one) => one.rows !== step.rows)) return null;
    let at = column;
    for (const one of named) {
      if (at < one.columns) {
        const same = Math.abs(this.at(one, row, at) - value) < 1e-6;
        return same
          ? {
              how: `the same number as in ${one.name}`,
              value,
              terms: [],
              plus: null,
              factors: [{ step: one, row, column: at }],
            }
          : null;
      }
      at -= one.columns;
    }
    return null;
  }
}
