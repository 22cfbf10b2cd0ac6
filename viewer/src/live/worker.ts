// The worker of a live page: it inflates the library and the model, and answers calls, one after another. multihead.js
// stands before it in the same script.
import { bytesOfBase64, inflated } from "../decode";
import { Library, type ModuleFactory, Refused } from "./library";
import type { LiveFile } from "./payload";
import type { Reply, Request } from "./protocol";

declare const multihead: ModuleFactory;

const say = (reply: Reply): void => self.postMessage(reply);
const told = (error: unknown): string => (error instanceof Error ? error.message : String(error));

interface Opening {
  name: string;
  files: LiveFile[];
  /** The deflated parts of the file that comes. */
  parts: Uint8Array[];
  done: Map<string, Uint8Array>;
}

let opening: Opening | null = null;
let library: Library | null = null;
let model = 0;

async function opened({ name, files, done }: Opening): Promise<void> {
  const [first] = files;
  const wasm = done.get(first?.name ?? "");
  if (!wasm) throw new Error("the page holds no library");
  done.delete(first?.name ?? "");
  library = await Library.load(multihead, wasm);
  const { model: number, ...about } = library.open(name, done);
  model = number;
  opening = null;
  say({ says: "ready", about });
}

async function part(to: Opening, base64: string): Promise<void> {
  const file = to.files[to.done.size];
  if (!file) throw new Error("the page holds more than it says");
  to.parts.push(bytesOfBase64(base64));
  if (to.parts.length < file.parts) return;
  const bytes = await inflated(to.parts);
  if (bytes.length !== file.bytes)
    throw new Error(`${file.name} has ${bytes.length} bytes, and the page says ${file.bytes}: it was cut or changed`);
  to.done.set(file.name, bytes);
  to.parts = [];
  if (to.done.size === to.files.length) await opened(to);
}

function asked({ id, call, given }: Extract<Request, { do: "ask" }>): void {
  const begun = performance.now();
  try {
    if (!library) throw new Refused("the model is not open yet");
    const answer = library.call(call as "about", model, given);
    say({ says: "answer", id, answer, milliseconds: performance.now() - begun });
  } catch (error) {
    say({ says: "refused", id, why: told(error) });
  }
}

/** Parts come faster than they are inflated: each waits for those before it. */
let before: Promise<void> = Promise.resolve();

self.onmessage = ({ data }: MessageEvent<Request>) => {
  if (data.do === "ask") return asked(data);
  before = before
    .then(async () => {
      if (data.do === "begin") opening = { name: data.name, files: data.files, parts: [], done: new Map() };
      else if (opening) await part(opening, data.base64);
    })
    .catch((error: unknown) => {
      opening = null;
      say({ says: "failed", why: told(error) });
    });
};
