// What the page and its worker say to each other.
import type { About } from "./library";
import type { LiveFile } from "./payload";

/** From the page. */
export type Request =
  | { do: "begin"; name: string; files: LiveFile[] }
  /** The next element of base64, in the order of the files. */
  | { do: "part"; base64: string }
  | { do: "ask"; id: number; call: string; given: object };

/** From the worker. */
export type Reply =
  | { says: "ready"; about: About }
  /** It will not answer: the model or the library is damaged, or this browser cannot run it. */
  | { says: "failed"; why: string }
  | { says: "answer"; id: number; answer: unknown; milliseconds: number }
  | { says: "refused"; id: number; why: string };
