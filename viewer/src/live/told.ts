// The live page in words and figures: pure functions from what it knows to what it shows.
import { bandsOfHeads, type PartBand } from "../contributions";
import { figure, findHead, headNames, percent, shown, visible } from "../names";
import { titleOfNode } from "../node";
import type { Run } from "../page";
import type { Scored } from "../written";
import { changeInWords, type HeadChanges } from "./changes";
import { type LeftOut, ranked } from "./lanes";
import type { LiveWeights } from "./payload";
import type { Said } from "./question";
import type { State } from "./session";

const beginsWord = /^[▁Ġ ]/u;

/** Whether a space stands before each token: vocabularies mark beginnings of words, or what goes on with one (##). */
function spaced(labels: string[]): boolean[] {
  const marked = labels.some((label) => beginsWord.test(label));
  return labels.map((label) => (marked ? beginsWord.test(label) || label.startsWith("<") : !label.startsWith("##")));
}

/** The whole model's tokens with what each has lost of log p; without a changed model all are 0. */
export function lossesOf(whole: Said, changed: Said | null): Scored[] {
  const apart = spaced(whole.tokens.map(({ label }) => label));
  return whole.tokens.map(({ label, log_probability }, i) => {
    const other = changed?.tokens[i]?.log_probability ?? log_probability;
    return { word: shown(label), apart: apart[i] ?? true, kept: false, score: other - log_probability };
  });
}

/** "log p of the translation: −2.31, with your changes −9.80, which is 7.49 less" */
export function differenceInWords(measure: string, whole: number, changed: number | null): string {
  if (changed === null) return `${measure}: ${figure(whole)}`;
  const by = changed - whole;
  const change = by === 0 ? "the same" : `${figure(Math.abs(by))} ${by < 0 ? "less" : "more"}`;
  return `${measure}: ${figure(whole)}, with your changes ${figure(changed)}, ${change}`;
}

/** The words that lose most, with how much: "der −2.31, eine −0.41" */
export function mostInWords(losses: Scored[]): string {
  return losses
    .filter(({ score }) => Math.abs(score) >= 0.005)
    .sort((a, b) => Math.abs(b.score) - Math.abs(a.score))
    .slice(0, 3)
    .map(({ word, score }) => `${visible(word)} ${figure(score)}`)
    .join(", ");
}

/** What is changed, head by head; empty: nothing is. */
export function changesInWords(run: Run, changes: HeadChanges): string {
  const all = [...changes].map(([head, change]) => `${titleOfNode(run, head)} ${changeInWords(change)}`);
  return all.length > 4 ? `${all.slice(0, 3).join("; ")}; and ${all.length - 3} heads more` : all.join("; ");
}

/**
 * All heads of the run, with how the number changes without each as far as it is known, so that what is lost is below
 * 0; those that are changed have a frame.
 */
export function liveBands(run: Run, leftOut: LeftOut | null, changes: HeadChanges): PartBand[] {
  const heads = headNames(run).map((head) => {
    const change = changes.get(head);
    const loss = leftOut?.losses.get(head);
    const value = loss === undefined ? null : -loss;
    return change === undefined ? { head, value } : { head, value, framed: changeInWords(change) };
  });
  return bandsOfHeads(run, heads);
}

export function fullLoss(leftOut: LeftOut | null): number {
  return Math.max(...[...(leftOut?.losses.values() ?? [])].map(Math.abs), 0) || 1;
}

/** What came of leaving each out, and of the guess. */
export function leftOutInWords(run: Run, leftOut: LeftOut): string {
  const { losses, of, guess } = leftOut;
  if (losses.size < of) return `${losses.size} of ${of} heads`;
  const order = ranked(leftOut);
  const [first] = order;
  if (!first) return "";
  const title = titleOfNode(run, first.head);
  const most =
    first.loss >= 0
      ? `Most is lost without ${title}: ${figure(first.loss)}.`
      : `Most changes without ${title}: it rises by ${figure(-first.loss)}.`;
  const place = order.findIndex(({ head }) => head === guess);
  if (place < 0) return most;
  if (place === 0) return `You guessed right. ${most}`;
  return `${most} Your guess, ${titleOfNode(run, guess)}, is number ${place + 1} of ${of}: ${figure(
    order[place]?.loss ?? Number.NaN,
  )}.`;
}

export function stateInWords(state: State, milliseconds: number): string {
  if (state.is === "failed") return `${state.why} The page shows what was recorded.`;
  if (state.is === "opening")
    return state.share < 1 ? `The model is read from this page: ${percent(state.share)}` : "The model is opened …";
  return milliseconds === 0
    ? "The model is ready."
    : `Answered in ${Math.max(1, Math.round(milliseconds))} ms, in here.`;
}

/** How near the model in the page is to the one of the file. */
export function weightsInWords({ as, difference, cosine, texts }: LiveWeights): string {
  if (as === "file") return "The model in this page has the weights of its file, not rounded.";
  const to =
    as === "int8"
      ? "The model's matrices are rounded to 8 bits a number"
      : "The model's weights are rounded to 16 bits a number";
  const on = texts === 1 ? "on the text that was recorded" : `on ${texts} texts`;
  const by: string[] = [];
  // Numbers of either end of a range round to the worse side.
  if (difference !== null)
    by.push(`logits differ by at most ${(Math.ceil(1e4 * difference) / 100).toFixed(2)} % of their range`);
  if (cosine !== null) by.push(`vectors have a cosine of at least ${(Math.floor(1e5 * cosine) / 1e5).toFixed(5)}`);
  return `${to}: ${on}, ${by.join(", and ")} ${difference === null ? "with" : "from"} those of the file.`;
}

/** Heads of the same attention: a layer. */
export function headsOfLayer(run: Run, head: string): string[] {
  const at = findHead(run, head);
  const of = at && run.attentions[at.attention];
  return of ? Array.from({ length: of.heads }, (_, number) => `${of.name}.${number}`) : [];
}
