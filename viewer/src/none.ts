// What the page has of a text: an analysis, or why there is none.
import { fields, type Reader, record, text } from "./reader";

export interface None {
  why: string;
}

const none = record<None>({ why: text });

export function orWhy<T>(read: Reader<T>): Reader<T | None> {
  return (value, where) => ("why" in fields(value, where) ? none(value, where) : read(value, where));
}

/** The analysis; null: there is none. */
export function found<T extends object>(of: T | None | null | undefined): T | null {
  return of && !("why" in of) ? of : null;
}

/** Why there is none, in a sentence; null: there is one. `things`: "Attributions". */
export function whyNone(of: object | null, things: string): string | null {
  if (of === null) return `${things} were left out of this page.`;
  return "why" in of && typeof of.why === "string" ? of.why : null;
}
