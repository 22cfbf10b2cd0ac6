// Readers of a page's data: each gives the value in its type, or one line that says which field is wrong.

/** A page that cannot be shown; its message is the line that the reader sees. */
export class BadPage extends Error {}

/** `where` is the path of the value: "runs[0].evidence.stats". */
export type Reader<T> = (value: unknown, where: string) => T;

export type Fields = Record<string, unknown>;

export function wrong(value: unknown, where: string, expected: string): BadPage {
  return new BadPage(value === undefined ? `${where} is missing.` : `${where} is ${expected}.`);
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function fields(value: unknown, where: string): Fields {
  if (!isFields(value)) throw wrong(value, where, "not an object");
  return value;
}

export function list(value: unknown, where: string): unknown[] {
  if (!Array.isArray(value)) throw wrong(value, where, "not a list");
  return value;
}

export function text(value: unknown, where: string): string {
  if (typeof value !== "string") throw wrong(value, where, "not a text");
  return value;
}

export function count(value: unknown, where: string, least = 0): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < least) {
    throw wrong(value, where, `not a whole number of at least ${least}`);
  }
  return value;
}

/** What a measure says; null where it says nothing. */
export type Figure = number | null;

export function figure(value: unknown, where: string): Figure {
  if (value !== null && typeof value !== "number") throw wrong(value, where, "neither a number nor null");
  return value;
}

export function number(value: unknown, where: string): number {
  if (typeof value !== "number") throw wrong(value, where, "not a number");
  return value;
}

export function flag(value: unknown, where: string): boolean {
  if (typeof value !== "boolean") throw wrong(value, where, "neither true nor false");
  return value;
}

export function oneOf<T extends string>(...allowed: readonly T[]): Reader<T> {
  return (value, where) => {
    const found = allowed.find((one) => one === value);
    if (found === undefined) throw wrong(value, where, `none of ${allowed.join(", ")}`);
    return found;
  };
}

export function listOf<T>(read: Reader<T>): Reader<T[]> {
  return (value, where) => list(value, where).map((one, i) => read(one, `${where}[${i}]`));
}

/** An object whose keys are not known before. */
export function tableOf<T>(read: Reader<T>): Reader<{ [key: string]: T }> {
  return (value, where) =>
    Object.fromEntries(Object.entries(fields(value, where)).map(([key, one]) => [key, read(one, `${where}.${key}`)]));
}

export function orNull<T>(read: Reader<T>): Reader<T | null> {
  return (value, where) => (value === null ? null : read(value, where));
}

/** Of a field that the tool leaves out where it has nothing to say. */
export function orAbsent<T>(read: Reader<T>): Reader<T | null> {
  return (value, where) => (value === undefined || value === null ? null : read(value, where));
}

/** An object of these fields; others are left out. */
export function record<T extends object>(readers: { [name in keyof T]: Reader<T[name]> }): Reader<T> {
  return (value, where) => {
    const it = fields(value, where);
    const made: Partial<T> = {};
    for (const name in readers) made[name] = readers[name](it[name], `${where}.${name}`);
    return made as T; // `readers` has every field of T
  };
}
