// What the reader has chosen, as the fragment of the address: numbers by their names, a sentence, and a cell whose sum
// is open.

/** The longest sentence, in characters. */
export const mostText = 160;

export interface Chosen {
  /** Of sliders and of the guess; −1: no guess yet. */
  values: { [name: string]: number };
  /** "weights_0:2:1"; empty: none. */
  cell: string;
  /** Whether the answer is shown. */
  answered: boolean;
  /** The reader's sentence; empty: the page's. */
  text: string;
}

/** A number that can be chosen: one of these. */
export interface Range {
  name: string;
  choices: readonly number[];
  start: number;
}

export function first(ranges: readonly Range[]): Chosen {
  return {
    values: Object.fromEntries([["guess", -1], ...ranges.map(({ name, start }) => [name, start])]),
    cell: "",
    answered: false,
    text: "",
  };
}

export function fragmentOf({ values, cell, answered, text }: Chosen, ranges: readonly Range[]): string {
  const parts = new URLSearchParams();
  const start = first(ranges).values;
  for (const [name, value] of Object.entries(values)) if (value !== start[name]) parts.set(name, String(value));
  if (cell) parts.set("cell", cell);
  if (answered) parts.set("answered", "1");
  if (text) parts.set("text", text);
  return `#${parts.toString()}`;
}

/** What does not fit is left as it is at first. guesses: how many there are. */
export function chosenOf(fragment: string, ranges: readonly Range[], guesses: number): Chosen {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  const chosen = first(ranges);
  const guess = Number(parts.get("guess") ?? -1);
  if (Number.isInteger(guess) && guess >= 0 && guess < guesses) chosen.values.guess = guess;
  for (const { name, choices } of ranges) {
    const value = Number(parts.get(name) ?? Number.NaN);
    if (choices.includes(value)) chosen.values[name] = value;
  }
  const cell = parts.get("cell") ?? "";
  if (/^\w+:\d+:\d+$/.test(cell)) chosen.cell = cell;
  chosen.text = (parts.get("text") ?? "").slice(0, mostText).trim();
  chosen.answered = parts.get("answered") === "1" && chosen.values.guess !== -1;
  return chosen;
}
