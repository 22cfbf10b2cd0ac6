// What the tests need of a browser, whichever it is. chromium.ts and firefox.ts implement it.
import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";

/** How the reader's machine looks to the page. */
export interface Looks {
  dark?: boolean;
  /** prefers-reduced-motion */
  still?: boolean;
  width?: number;
  height?: number;
}

export interface Download {
  name: string;
  bytes: Buffer;
}

/** A page open in a browser. */
export interface Tab {
  /** "Firefox, demo.html, dark": begins every failure's message. */
  readonly where: string;
  /** Errors on the console, exceptions, requests that leave the page, and what its policy refused. */
  readonly faults: string[];
  /** `script` runs in the page with a copy of `given`; it sees nothing else of the test. */
  evaluate<Given, Result>(script: (given: Given) => Result | Promise<Result>, given: Given): Promise<Result>;
  /** Runs the text of a script, a library. */
  run(script: string): Promise<void>;
  /** A key as in KeyboardEvent.key, with modifiers before it: "ArrowRight", "Shift+Tab", "Control+z". */
  press(key: string): Promise<void>;
  click(selector: string): Promise<void>;
  /** Moves the pointer to the middle of an element. */
  point(selector: string): Promise<void>;
  /** Does `act` and takes the file that the page then saves. */
  download(act: () => Promise<void>): Promise<Download>;
  /** What the clipboard holds. */
  clipboard(): Promise<string>;
  screenshot(file: string, whole: boolean): Promise<void>;
  pdf(): Promise<Buffer>;
  /** Shows the page as it is printed; false: the driver cannot. */
  as_printed(on: boolean): Promise<boolean>;
  close(): Promise<void>;
}

export interface Browser {
  readonly name: string;
  /** Opens the file at `path` from disk; `fragment` without its #. */
  open(path: string, looks?: Looks, fragment?: string): Promise<Tab>;
  close(): Promise<void>;
}

/** Opens a page in the browser of the tests, which closes it after the test. */
export type Open = (path: string, looks?: Looks, fragment?: string) => Promise<Tab>;

export interface Kind {
  name: string;
  program: string | null;
  launch(): Promise<Browser>;
}

export const wide = { width: 1280, height: 900 };
export const phone = { width: 390, height: 844 };
export const patience = 10_000; // milliseconds until something on the page must have happened

export function first_of(programs: string[]): string | null {
  return programs.find((program) => existsSync(program)) ?? null;
}

export function address(path: string, fragment: string | undefined): string {
  return pathToFileURL(path).href + (fragment ? `#${fragment}` : "");
}

export function described(browser: string, path: string, looks: Looks): string {
  const modes = [
    looks.dark ? "dark" : "",
    looks.still ? "reduced motion" : "",
    looks.width ? `${looks.width} px wide` : "",
  ];
  return [browser, path.split("/").at(-1), ...modes].filter(Boolean).join(", ");
}

/** Whether a request stays in the page that is at `page`. */
export function stays(url: string, page: string): boolean {
  return url.startsWith("data:") || url.startsWith("blob:") || url.split("#")[0] === page.split("#")[0];
}

/** Keeps a fault once, in one line. */
export function note(faults: string[], fault: string): void {
  const line = fault.replace(/\s+/g, " ").slice(0, 300);
  if (!faults.includes(line)) faults.push(line);
}

/** Runs before the page's own script: writes what the policy refuses to the console, where the tab collects it. */
export function tell_refusals(): void {
  document.addEventListener("securitypolicyviolation", (event) => {
    console.error(`the page's policy refused ${event.blockedURI} (${event.violatedDirective})`);
  });
}

/** As text that a browser can run, for drivers that take functions as well as for those that do not. */
export function call<Given>(script: (given: Given) => unknown, given: Given): string {
  return `(${script})(${JSON.stringify(given) ?? ""})`;
}
