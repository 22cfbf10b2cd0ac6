// What the live page knows of the reader's text: the whole model's answer, that of the changed one, and what is lost
// without each head. Only the newest question is answered: an older one ends where it stands.
import { callOf, type HeadChanges, writeChanges } from "./changes";
import { type Question, type Said, numberOf } from "./question";

export interface Asked {
  text: string;
  /** Of a model that compares two texts. */
  second: string;
  changes: HeadChanges;
}

export interface LeftOut {
  /** By head, the number of the whole model less that without the head: what is lost. */
  losses: ReadonlyMap<string, number>;
  /** How many heads there are; as many losses: it is done. */
  of: number;
  /** The head that the reader guessed to matter most; "": none. */
  guess: string;
}

const textsOf = ({ text, second }: Asked): string => JSON.stringify([text, second]);

export class Lanes {
  whole: Said | null = null;
  changed: Said | null = null;
  leftOut: LeftOut | null = null;
  /** The library's line about a text or a change that it refused; "": there is none. */
  why = "";
  private asked: Asked = { text: "", second: "", changes: new Map() };
  /** What is answered, or being answered; and of which texts `whole` is. */
  private of = "";
  private wholeOf = "";
  private number = 0;

  constructor(
    readonly question: Question,
    private readonly told: () => void,
  ) {}

  async ask(asked: Asked): Promise<void> {
    const key = textsOf(asked) + writeChanges(asked.changes);
    if (key === this.of) return;
    this.of = key;
    // What is lost without each head is of the whole model, so that it stays where only changes are others.
    if (textsOf(asked) !== textsOf(this.asked) || this.leftOut?.losses.size !== this.leftOut?.of) this.leftOut = null;
    this.asked = asked;
    await this.newest(async (alive) => {
      const { text, second, changes } = asked;
      const known = this.wholeOf === textsOf(asked) ? this.whole : null;
      const whole = known ?? (await this.question.whole(text, second));
      if (!alive()) return;
      this.whole = whole;
      this.wholeOf = textsOf(asked);
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

  /** Leaves each of these heads out of the whole model, and tells of each as it comes. */
  async leaveEachOut(heads: readonly string[], guess: string): Promise<void> {
    const { whole, asked } = this;
    if (!whole || this.wholeOf !== textsOf(asked)) return;
    await this.newest(async (alive) => {
      const losses = new Map<string, number>();
      for (const head of heads) {
        const without = callOf(new Map([[head, 0]]));
        const value = await this.question.value(asked.text, asked.second, whole, without);
        if (!alive()) return;
        losses.set(head, numberOf(whole) - value);
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
      this.whole = this.changed = null;
      this.told();
    }
  }
}

/** Heads by what is lost without them, most first; a similarity that rises is as much a change as one that falls. */
export function ranked({ losses }: LeftOut): { head: string; loss: number }[] {
  return [...losses].map(([head, loss]) => ({ head, loss })).sort((a, b) => Math.abs(b.loss) - Math.abs(a.loss));
}
