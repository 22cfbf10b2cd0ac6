// What the stream of a text says after each layer, as a table: places of the model by tokens, by labels or by cosines.
import { sidesOf, type Side } from "./app";
import type { Lensed, LensedVectors, LensedWord, LensedWords } from "./lensed";
import { figure, findHead, percent, shown } from "./names";
import { found } from "./none";
import type { Attention, Run, Text } from "./page";
import type { Figure } from "./reader";
import type { Choice } from "./state";

export interface LensTable {
  /** What stands above the columns: tokens that are read, labels, or what a vector is compared with. */
  columns: string[];
  rows: LensRow[];
  /** What the text has where each column predicts; null: it is not known, of single columns or of all. */
  actual: (string | null)[] | null;
  /** What the cells and their colours are. */
  about: string;
}

export interface LensRow {
  /** "embed", "3" */
  name: string;
  /** "After layer 3" */
  title: string;
  cells: LensCell[];
}

export interface LensCell {
  text: string;
  /** −1 to 1: how probable what the model says in the end is here, or a cosine. */
  shade: number;
  /** The first words or labels here with what they have, best first; of a cosine it alone. */
  best: { word: string; has: string }[];
  /** Where what the model says in the end stands here; null: it need not be said. */
  end: string | null;
}

/** Small chances in figures, not as nought per cent. */
const chance = (share: number): string => (share > 0 && share < 0.001 ? figure(share) : percent(share));
const has = ({ probability, logit }: LensedWord): string =>
  probability !== null ? chance(probability) : figure(logit ?? Number.NaN);

function placeOf(site: string, last: boolean): { name: string; title: string } {
  const layer = /\.(\d+)\.output$/.exec(site)?.[1];
  if (layer === undefined) return { name: "embed", title: "The embeddings" };
  return { name: layer, title: last ? `After layer ${layer}, the last` : `After layer ${layer}` };
}

/** The values of each place in turn. */
function rowsOf<T extends { site: string }>(values: T[], columns: number, cell: (of: T, i: number) => LensCell) {
  const places = values.length / columns;
  return Array.from({ length: places }, (_, p): LensRow => {
    const own = values.slice(p * columns, (p + 1) * columns);
    return { ...placeOf((own[0] as T).site, p === places - 1), cells: own.map(cell) };
  });
}

function wordTable({ says, positions, values }: LensedWords): LensTable {
  const things = says === "words" ? "word" : "label";
  const rows = rowsOf(values, positions.length, ({ best, predicted }, i): LensCell => {
    const share = Math.exp(predicted.log_probability ?? Number.NEGATIVE_INFINITY);
    const end = shown(positions[i]?.predicted.token ?? "");
    return {
      text: shown(best[0]?.token ?? "", 14),
      shade: Math.min(1, share),
      best: best.slice(0, 5).map((one) => ({ word: shown(one.token), has: has(one) })),
      end: `“${end}”, which the model says in the end, is number ${predicted.rank} here, with ${chance(share)}.`,
    };
  });
  const actual = positions.map((one) => (one.actual ? shown(one.actual.token, 14) : null));
  return {
    columns: positions.map((one) => shown(one.token ?? "", 14)),
    rows,
    actual: actual.some((one) => one !== null) ? actual : null,
    about:
      `The most probable ${things} when the model's own end reads the sum that has run through the layers so far. ` +
      `The deeper the colour, the more probable is what the model says there in the end.`,
  };
}

/** Labels of the whole text: a column for each. */
function labelTable({ scores, values }: LensedWords): LensTable {
  const labels = values[values.length - 1]?.best.map((one) => one.token) ?? [];
  const rows = rowsOf(values, 1, () => ({ text: "", shade: 0, best: [], end: null })).map((row, p) => ({
    ...row,
    cells: labels.map((label): LensCell => {
      const one = values[p]?.best.find(({ token }) => token === label);
      const text = one ? has(one) : "";
      return { text, shade: one?.probability ?? 0, best: [{ word: shown(label), has: text }], end: null };
    }),
  }));
  const what = scores === "logits" ? "The figures" : "The probabilities";
  return {
    columns: labels.map((label) => shown(label, 24)),
    rows,
    actual: null,
    about: `${what} of the labels when the model's own end reads the sum that has run through the layers so far.`,
  };
}

function vectorTable({ second, values }: LensedVectors): LensTable {
  const others: { word: string; of: (value: LensedVectors["values"][number]) => Figure }[] = [
    { word: "cosine with its own vector", of: (value) => value.own },
  ];
  if (second !== null) others.push({ word: `cosine with “${shown(second, 40)}”`, of: (value) => value.second });
  const rows = values.map((value, p): LensRow => {
    const cells = others.map(({ word, of }): LensCell => {
      const cosine = of(value) ?? Number.NaN;
      const text = figure(cosine);
      return { text, shade: Math.max(-1, Math.min(1, cosine || 0)), best: [{ word, has: text }], end: null };
    });
    return { ...placeOf(value.site, p === values.length - 1), cells };
  });
  return {
    columns: others.map(({ word }) => word),
    rows,
    actual: null,
    about:
      "The cosine of the vector that pooling makes of the sum that has run through the layers so far " +
      `with ${second === null ? "the text's own vector" : "the text's own vector, and with that of the other text"}.`,
  };
}

const isOfText = (its: LensedWords): boolean => its.says === "labels" && its.positions[0]?.position === null;

export function lensTableOf(its: Lensed): LensTable {
  if (its.says === "vectors") return vectorTable(its);
  return isOfText(its) ? labelTable(its) : wordTable(its);
}

/** The text that the lens reads. */
function sideOf(run: Run, its: Lensed): Side {
  return its.says === "words" && run.family === "translator" ? "target" : "source";
}

export interface LensFocus {
  row: number;
  column: number;
}

/** Whether the token in focus is one of those that the lens reads. */
function sharesFocus(run: Run, of: Text, its: Lensed, head: string): boolean {
  const at = findHead(run, head);
  return at !== null && sidesOf(run.attentions[at.attention] as Attention, of)[0] === sideOf(run, its);
}

/** The chosen cell: its column is the token in focus where it can be, at first in the last row. */
export function focusOf(run: Run, of: Text, its: Lensed, choice: Choice): LensFocus {
  const { columns, rows } = lensTableOf(its);
  const cell = /^lens:(\d+):(\d+)$/.exec(choice.cell);
  const within = (value: string | undefined, count: number, otherwise: number) =>
    value === undefined ? otherwise : Math.min(Number(value), count - 1);
  // Of labels the first one is what the model says in the end.
  const column = its.says === "labels" && isOfText(its) ? 0 : columns.length - 1;
  const byQuery =
    its.says !== "vectors" && !isOfText(its) && sharesFocus(run, of, its, choice.head)
      ? its.positions.findIndex((one) => one.position === choice.query)
      : -1;
  return {
    row: within(cell?.[1], rows.length, rows.length - 1),
    column: byQuery >= 0 ? byQuery : within(cell?.[2], columns.length, column),
  };
}

/** What choosing a cell changes: its token comes into focus everywhere. */
export function choiceOfCell(
  run: Run,
  of: Text,
  its: Lensed,
  { row, column }: LensFocus,
  head: string,
): Partial<Choice> {
  const cell = `lens:${row}:${column}`;
  const position = its.says === "vectors" ? null : (its.positions[column]?.position ?? null);
  return position !== null && sharesFocus(run, of, its, head) ? { cell, query: position, key: null } : { cell };
}

/** From which place on what the model says in the end comes first: "from layer 3 on". */
function leadsFrom({ positions, values }: LensedWords, column: number): string {
  const ranks = values.filter((_, i) => i % positions.length === column).map((value) => value.predicted.rank);
  let place = ranks.length - 1;
  while (place > 0 && ranks[place - 1] === 1) place -= 1;
  if (place === ranks.length - 1) return "only after the last layer";
  const { name } = placeOf(values[place * positions.length]?.site ?? "", false);
  return name === "embed" ? "from the embeddings on" : `from layer ${name} on`;
}

/** "at “to”, “Mary” comes first from layer 28 on" */
export function lensInWords(run: Run, of: Text, choice: Choice): string {
  const its = found<Lensed>(of.lens);
  if (!its) return "";
  if (its.says === "vectors") return "the text's vector after each layer";
  const column = isOfText(its) ? 0 : focusOf(run, of, its, choice).column;
  const position = its.positions[column];
  if (!position) return "";
  const at = position.token === null ? "" : `at “${shown(position.token)}”, `;
  return `${at}“${shown(position.predicted.token)}” comes first ${leadsFrom(its, column)}`;
}

/** A cell in a sentence, for those who do not see it. */
export function cellInWords({ columns, rows }: LensTable, { row, column }: LensFocus): string {
  const its = rows[row] as LensRow;
  const { best, end } = its.cells[column] as LensCell;
  const said = best.map(({ word, has: figures }) => `${word} ${figures}`).join(", ");
  return end === null ? `${its.title}: ${said}` : `${its.title}, at ${columns[column]}: ${said}. ${end}`;
}
