// What the live page knows of the reader's text: the whole model's answer, that of the changed one, and what is lost
// without each head. Only the newest question is answered: an older one ends where it stands.
import { callOf, type HeadChanges, withHeads, writeChanges } from "./changes";
import { type Question, type Said, numberOf } from "./question";

export interface Asked {
  text: string;
  /** Of a model that compares two texts. */
  second: string;
  changes: HeadChanges;
}

export interface LeftOut {
  /** By head, the number of the changed model less that without the head: what is lost. */
  losses: ReadonlyMap<string, number>;
  /** How many heads there are; as many losses: it is done. */
  of: number;
  /** The head that the reader guessed to matter most; "": none. */
  guess: string;
}

export class Lanes {
  whole: Said | null = null;
  changed: Said | null = null;
  leftOut: LeftOut | null = null;
  /** The library's line about a text or a change that it refused; "": there is none. */
  why = "";
  private asked: Asked = { text: "", second: "", changes: new Map() };
  private of = "";
  private number = 0;

  constructor(
    private readonly question: Question,
    private readonly told: () => void,
  ) {}

  /** Whether the number of `asked` is answered already, or is being answered. */
  private keyOf(asked: Asked): string {
    return JSON.stringify([asked.text, asked.second, writeChanges(asked.changes)]);
  }

  async ask(asked: Asked): Promise<void> {
    const key = this.keyOf(asked);
    if (key === this.of) return;
    const sameText = this.whole !== null && asked.text === this.asked.text && asked.second === this.asked.second;
    this.of = key;
    this.asked = asked;
    this.leftOut = null;
    await this.newest(async (alive) => {
      const { text, second, changes } = asked;
      const whole = sameText && this.whole ? this.whole : await this.question.whole(text, second);
      if (!alive()) return;
      this.whole = whole;
      this.changed = null;
      this.why = "";
      this.told();
      if (changes.size === 0) return;
      const changed = await this.question.changed(text, second, whole, callOf(changes));
      if (!alive()) return;
      this.changed = changed;
      this.told();
    });
  }

  /** Leaves out each of these heads, besides what is changed, and tells of each as it comes. */
  async leaveEachOut(heads: readonly string[], guess: string): Promise<void> {
    const { whole, asked } = this;
    if (!whole) return;
    await this.newest(async (alive) => {
      const losses = new Map<string, number>();
      const base = numberOf(this.changed ?? whole);
      for (const head of heads) {
        const without = callOf(withHeads(asked.changes, [head], 0));
        const value = await this.question.value(asked.text, asked.second, whole, without);
        if (!alive()) return;
        losses.set(head, base - value);
        this.leftOut = { losses, of: heads.length, guess };
        this.told();
      }
    });
  }

  private async newest(work: (alive: () => boolean) => Promise<void>): Promise<void> {
    const number = ++this.number;
    const alive = () => number === this.number;
    try {
      await work(alive);
    } catch (error) {
      if (!alive()) return;
      this.why = error instanceof Error ? error.message : String(error);
      this.of = "";
      this.whole = this.changed = null;
      this.told();
    }
  }
}

/** Heads by what is lost without them, most first; a similarity that rises is as much a change as one that falls. */
export function ranked({ losses }: LeftOut): { head: string; loss: number }[] {
  return [...losses].map(([head, loss]) => ({ head, loss })).sort((a, b) => Math.abs(b.loss) - Math.abs(a.loss));
}
