// The reader's sentence in the model that the page holds: what one attention of the encoder reads, its weights, and
// what the translation loses without each of its heads. Only the newest sentence is answered.
import { openPage } from "../decode";
import { callOf } from "../live/changes";
import { numberOf, type Question, questionFor } from "../live/question";
import { type LiveElements, Session } from "../live/session";
import { stateInWords } from "../live/told";
import { Steps } from "../walk";
import { layerOf } from "./layer";
import type { ReadText } from "./play";

export interface Wanted {
  text: string;
  /** Of the attentions of the encoder. */
  layer: number;
}

/** What a walk of an attention is made of. */
export async function readWalk(data: string): Promise<Pick<ReadText, "words" | "x" | "layer">> {
  const { page, numbers } = await openPage(data);
  const run = page.runs[0];
  if (!run?.walk) throw new Error("the library gave no walk");
  const words = (run.texts[0]?.source.tokens ?? []).map(({ label }) => label);
  return { words, ...layerOf(new Steps(run.walk, numbers)) };
}

export class Reading {
  read: ReadText | null = null;
  /** Why there is nothing to show, or not yet; empty: `read` is what was asked for last. */
  line = "The model is opened …";
  private readonly session: Session;
  private question: Question | null = null;
  private wanted: Wanted | null = null;

  constructor(
    elements: LiveElements,
    private readonly told: () => void,
  ) {
    this.session = new Session(elements, () => this.changed());
  }

  /** Asks for another sentence or attention; what was asked for last stays in `read` until it is there. */
  ask(wanted: Wanted): void {
    if (wanted.text === this.wanted?.text && wanted.layer === this.wanted.layer) return;
    this.wanted = wanted;
    if (this.session.state.is === "ready") void this.begin(wanted);
  }

  private changed(): void {
    const { state } = this.session;
    if (state.is === "ready") {
      this.question ??= questionFor(state.about, (call, given) => this.session.ask(call, given));
      if (this.wanted) void this.begin(this.wanted);
      return;
    }
    this.line = state.is === "failed" ? state.why : stateInWords(state, 0);
    this.told();
  }

  private async begin(wanted: Wanted): Promise<void> {
    let read: ReadText | null = null;
    let line = "";
    try {
      read = await this.make(wanted);
    } catch (error) {
      line = error instanceof Error ? error.message : String(error);
    }
    if (wanted !== this.wanted) return;
    this.read = read;
    this.line = line;
    this.told();
  }

  private async make({ text, layer }: Wanted): Promise<ReadText> {
    const { session, question } = this;
    if (session.state.is !== "ready" || !question) throw new Error("the model is not open yet");
    const { attentions } = session.state.about;
    const of = attentions.filter(({ name }) => name.startsWith("encoder."))[layer];
    if (!of) throw new Error(`the model has no layer ${layer}`);
    const { page, run } = session.elements.payload;
    const given = { texts: [text], page, run: { ...run, importance: false, walk: of.name } };
    const { data } = await session.ask("page", given);
    const whole = await question.whole(text, "");
    const losses: number[] = [];
    for (let head = 0; head < of.heads; head++) {
      const without = callOf(new Map([[`${of.name}.${head}`, 0]]));
      losses.push(numberOf(whole) - (await question.value(text, "", whole, without)));
    }
    return { text, says: whole.text, losses, ...(await readWalk(data)) };
  }
}
