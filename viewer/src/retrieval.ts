// Which heads fetch a fact from far back: squares by layer, places by length and depth, and the figures in words.
import { bandsOfHeads, type PartBand } from "./contributions";
import type { Retrieved, RetrievalHead, RetrievalNeed } from "./given";
import { figure, percent } from "./names";
import { titleOfNode } from "./node";
import type { Run } from "./page";
import type { Figure } from "./reader";

const share = (value: Figure): string => percent(value ?? Number.NaN);

/** "95 ± 7 %" */
function shareWithHalf(value: Figure, half: Figure): string {
  const whole = (number: number) => Math.round(100 * number);
  return half === null ? share(value) : `${whole(value ?? Number.NaN)} ± ${whole(half)} %`;
}

/** The scores of all heads, layer under layer. */
export const scoreBandsOf = (run: Run, its: Retrieved): PartBand[] =>
  bandsOfHeads(
    run,
    its.heads.map(({ head, score }) => ({ head, value: score ?? 0 })),
  );

const byScore = (a: RetrievalHead, b: RetrievalHead): number => (b.score ?? 0) - (a.score ?? 0);

export const bestHeads = ({ heads }: Retrieved, count: number): RetrievalHead[] =>
  [...heads].sort(byScore).slice(0, count);

export const needOf = ({ limited }: Retrieved, head: string): RetrievalNeed | null =>
  limited.find(({ heads }) => heads.includes(head)) ?? null;

/** "95 % of the answers' tokens are copied" */
export function retrievalInWords(run: Run, its: Retrieved | null): string {
  const [best] = its ? bestHeads(its, 1) : [];
  return best ? `${titleOfNode(run, best.head)} copies ${share(best.score)} of the answers` : "";
}

export function headCopiesInWords(run: Run, its: Retrieved, head: string): string {
  const rank = [...its.heads].sort(byScore).findIndex((one) => one.head === head);
  const one = its.heads.find((other) => other.head === head);
  if (!one) return "This head was not measured.";
  return (
    `${titleOfNode(run, head)} copies ${shareWithHalf(one.score, one.score_half)} of the answers' tokens, and gives ` +
    `them ${shareWithHalf(one.weight, one.weight_half)} of its weight: ` +
    `number ${rank + 1} of ${its.heads.length} heads by score.`
  );
}

/** "falls by 0.12 ± 0.03" */
function change(value: number, half: Figure): string {
  const interval = half === null ? "" : ` ± ${figure(half)}`;
  return `${value < 0 ? "rises" : "falls"} by ${figure(Math.abs(value))}${interval}`;
}

/** What is lost while the head sees the first keys and the last ones alone; empty: it was not measured. */
export function needInWords(its: Retrieved, head: string): string {
  const need = needOf(its, head);
  if (!need || need.fall === null) return "";
  const { sinks, window, limit } = its.options;
  const others = need.heads.filter((one) => one !== head).map((one) => one.split(".").pop());
  const together = [
    "",
    `, as is head ${others[0]}, which shares its keys`,
    `, as are heads ${others.join(" and ")}, which share its keys`,
  ][Math.min(2, others.length)];
  const rows = limit === "all" ? "in all rows" : "in the rows of question and answer";
  const loss =
    need.loss_rise === null
      ? ""
      : `, and the loss of ordinary text ${change(-need.loss_rise, need.loss_rise_half)} nats a token`;
  return (
    `Limited to the first ${sinks} keys and the last ${window} ${rows}${together}: ` +
    `log p of the answer ${change(need.fall, need.fall_half)} nats${loss}.`
  );
}

export interface PlaceTable {
  depths: number[];
  rows: { length: number; values: Figure[] }[];
}

/** A figure of each place, lengths by depths. */
export function placeTable({ places }: Retrieved, values: Figure[]): PlaceTable {
  const depths = [...new Set(places.map(({ depth }) => depth))].sort((a, b) => a - b);
  const lengths = [...new Set(places.map(({ length }) => length))].sort((a, b) => a - b);
  const rows = lengths.map((length) => ({
    length,
    values: depths.map((depth) => {
      const place = places.findIndex((one) => one.length === length && one.depth === depth);
      return values[place] ?? null;
    }),
  }));
  return { depths, rows };
}

export const scoresByPlace = (its: Retrieved, head: string): Figure[] =>
  its.heads.find((one) => one.head === head)?.by_place ?? [];

export function meaningOfRetrieval({ options }: Retrieved): string {
  const read =
    options.answers === "greedy"
      ? "The model writes its answer itself"
      : "The right answer is read, whatever the model would have said";
  return (
    "A sentence with a fact stands in a long text, and is asked for at the end. A head copies a token of the answer " +
    "if its largest weight is on that token in the sentence while the token comes next. " +
    `${read}. A look is not yet a cause: another head may look there, too.`
  );
}
