// The model in a live page, and all that is known of the reader's text: what views read, and what the page is told.
import { type Opened, openPage } from "../decode";
import type { Page } from "../page";
import type { Choice } from "../state";
import { readChanges } from "./changes";
import { Lanes } from "./lanes";
import type { LiveWeights } from "./payload";
import { questionFor } from "./question";
import { type LiveElements, Session } from "./session";
import { Refused } from "./library";

/** Up to so many parameters a new text gets all that takes long: attribution, contributions, lens, importance. */
const analysed = 2e6;

export interface Listening {
  /** Something is known that was not: the view is drawn anew. */
  told(): void;
  /** The page of another text has been made. */
  remade(opened: Opened): void;
}

/** What the reader has asked for; texts that are empty are the page's first. */
export type Typed = Pick<Choice, "typed" | "second" | "changes">;

export class Live {
  readonly session: Session;
  /** Null until the model is open. */
  lanes: Lanes | null = null;
  /** Why the page of the text could not be made; "": it could. */
  why = "";
  /** The page of this text is shown. */
  private shown: string;
  private making = "";
  /** The library refused to make the page of this text, and would again. */
  private refused = "";
  private wanted: Typed | null = null;

  constructor(
    elements: LiveElements,
    private readonly recorded: Page,
    private readonly listening: Listening,
  ) {
    this.shown = this.first;
    this.session = new Session(elements, () => this.opened());
  }

  /** The text of the page as it was recorded. */
  get first(): string {
    return this.recorded.runs[0]?.texts[0]?.source.text ?? "";
  }

  get weights(): LiveWeights {
    return this.session.elements.payload.weights;
  }

  private opened(): void {
    const { state } = this.session;
    if (state.is === "ready" && !this.lanes) {
      const question = questionFor(state.about, (call, given) => this.session.ask(call, given));
      this.lanes = new Lanes(question, () => this.listening.told());
      if (this.wanted) this.ask(this.wanted);
    }
    this.listening.told();
  }

  /** What the reader's text is, and the one that it is compared with. */
  textOf({ typed }: Typed): string {
    return typed || this.first;
  }
  secondOf({ second }: Typed): string {
    return second || this.first;
  }

  /** Answers what was typed and changed, and makes the page of another text. */
  ask(wanted: Typed): void {
    this.wanted = wanted;
    const [run] = this.recorded.runs;
    if (!this.lanes || !run) return;
    const text = this.textOf(wanted);
    const changes = readChanges(wanted.changes, run);
    const answered = this.lanes.ask({ text, second: this.secondOf(wanted), changes });
    if (text !== this.shown) void answered.then(() => this.remake(text));
  }

  private isWanted(text: string): boolean {
    return this.wanted !== null && this.textOf(this.wanted) === text;
  }

  /** What the page shows of a text: made in the worker, by the code of `multihead view`. */
  private async remake(text: string): Promise<void> {
    if (!this.isWanted(text) || [this.shown, this.making, this.refused].includes(text)) return;
    this.making = text;
    const { state, elements } = this.session;
    const { page, run } = elements.payload;
    const small = state.is === "ready" && state.about.parameters <= analysed;
    try {
      const given = { texts: [text], page, run: small ? run : { ...run, importance: false } };
      const { data } = await this.session.ask("page", given);
      if (!this.isWanted(text)) return;
      const opened = await openPage(data);
      opened.page = merged(this.recorded, opened.page);
      this.shown = text;
      this.why = "";
      this.listening.remade(opened);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.refused = text;
      if (this.isWanted(text)) this.why = error.message;
    } finally {
      if (this.making === text) this.making = "";
      this.listening.told();
    }
  }
}

/** A page of another text of the same model: what was measured on other texts than the page's own stays. */
export function merged(recorded: Page, made: Page): Page {
  const runs = made.runs.map((run, i) => {
    const before = recorded.runs[i];
    if (!before) return run;
    const { hash, name, circuit, retrieval, aligners } = before;
    const elsewhere = before.evidence.of !== run.evidence.of;
    // Of the evidence what is lost without a head was measured on the page's own text.
    const evidence = elsewhere ? { ...before.evidence, ablation: run.evidence.ablation } : run.evidence;
    return { ...run, hash, name, circuit, retrieval, aligners, evidence };
  });
  return { ...made, runs, made: recorded.made, live: true };
}
