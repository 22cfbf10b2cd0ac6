// The model of a live page as the page sees it: it is unpacked in a worker, and answers in turn.
import type { About, Answers } from "./library";
import { Refused } from "./library";
import { type Payload, readPayload } from "./payload";
import type { Reply, Request } from "./protocol";

export type State =
  | { is: "opening"; share: number }
  | { is: "ready"; about: About }
  /** Why there is no live model: sentences. */
  | { is: "failed"; why: string };

/** The smallest module with a vector instruction: browsers without them refuse it. */
const vectors = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
]);

const noWorkers = "This browser starts no worker for this page, in which the model would run.";

/** Why this browser cannot run the model; null: it can. */
export function whyNotHere(): string | null {
  if (typeof WebAssembly === "undefined" || !WebAssembly.validate(vectors))
    return "This browser has no WebAssembly with vectors, without which the model cannot run.";
  return typeof Worker === "undefined" ? noWorkers : null;
}

/** Null: the browser allows none here, as in some frames. */
function started(script: string): Worker | null {
  try {
    return new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  } catch {
    return null;
  }
}

/** The elements of a live page. */
export interface LiveElements {
  payload: Payload;
  /** The worker's script. */
  script: string;
  /** Base64, in the order of the files; each is taken off the page when it is read. */
  parts: HTMLElement[];
}

/** Null: the page has no model in it. Throws BadPage. */
export function liveElements(of: Document): LiveElements | null {
  const says = of.getElementById("live");
  if (!says) return null;
  return {
    payload: readPayload(says.textContent ?? ""),
    script: of.getElementById("worker")?.textContent ?? "",
    parts: [...of.querySelectorAll<HTMLElement>("script.live")],
  };
}

interface Waiting {
  resolve(answer: unknown): void;
  reject(why: Error): void;
}

export class Session {
  state: State = { is: "opening", share: 0 };
  /** Of the last answer, inside the worker. */
  milliseconds = 0;
  private readonly worker: Worker | null;
  private readonly waiting = new Map<number, Waiting>();
  private last = 0;

  constructor(
    readonly elements: LiveElements,
    private readonly changed: () => void,
  ) {
    const why = whyNotHere();
    this.worker = why === null ? started(elements.script) : null;
    if (!this.worker) {
      this.state = { is: "failed", why: why ?? noWorkers };
      return;
    }
    this.worker.onmessage = ({ data }: MessageEvent<Reply>) => this.hear(data);
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.fail(`the worker stopped: ${event.message || "it could not be started"}`);
    };
    void this.unpack();
  }

  /** Throws Refused with the library's own line. */
  ask<Name extends keyof Answers>(call: Name, given: object): Promise<Answers[Name]> {
    const id = ++this.last;
    return new Promise<Answers[Name]>((resolve, reject) => {
      if (this.state.is === "failed") return reject(new Refused(this.state.why));
      this.waiting.set(id, { resolve: (answer) => resolve(answer as Answers[Name]), reject });
      this.post({ do: "ask", id, call, given });
    });
  }

  private post(request: Request): void {
    this.worker?.postMessage(request);
  }

  /** Part by part, so that the page answers in between; what has been passed on is given back. */
  private async unpack(): Promise<void> {
    const { payload, parts } = this.elements;
    const all = parts.length;
    this.post({ do: "begin", name: payload.name, files: payload.files });
    for (let part = parts.shift(); part; part = parts.shift()) {
      await new Promise((next) => setTimeout(next, 0));
      this.post({ do: "part", base64: (part.textContent ?? "").trim() });
      part.remove();
      if (this.state.is !== "opening") return;
      this.state = { is: "opening", share: 1 - parts.length / all };
      this.changed();
    }
    const expected = payload.files.reduce((sum, file) => sum + file.parts, 0);
    if (all !== expected) this.fail(`it has ${all} of ${expected} parts: the file was cut or changed`);
  }

  private hear(reply: Reply): void {
    if (reply.says === "ready") {
      this.state = { is: "ready", about: reply.about };
      this.changed();
    } else if (reply.says === "failed") {
      this.fail(reply.why);
    } else {
      const one = this.waiting.get(reply.id);
      this.waiting.delete(reply.id);
      if (reply.says === "refused") one?.reject(new Refused(reply.why));
      else {
        this.milliseconds = reply.milliseconds;
        one?.resolve(reply.answer);
      }
    }
  }

  private fail(why: string): void {
    this.state = {
      is: "failed",
      why: `The model in this page cannot be opened: ${why}.`,
    };
    for (const one of this.waiting.values()) one.reject(new Refused(this.state.why));
    this.waiting.clear();
    this.worker?.terminate();
    this.changed();
  }
}
