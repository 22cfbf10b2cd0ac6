// What a reader of the page sees and does, by the places that viewer/README.md names.
import { patience, type Tab } from "./driver";

export interface Drawn {
  head: string;
  query: number;
  weights: number[];
}

/** Waits until `script` gives something other than false, null or undefined, `most` milliseconds, and returns it. */
export async function until<Given, Result>(
  tab: Tab,
  expected: string,
  script: (given: Given) => Result,
  given: Given,
  most = patience,
): Promise<Exclude<Result, false | null | undefined>> {
  for (const begun = Date.now(); ; await new Promise((done) => setTimeout(done, 20))) {
    const result = await tab.evaluate(script, given);
    if (result !== false && result !== null && result !== undefined) {
      return result as Exclude<Result, false | null | undefined>;
    }
    if (Date.now() - begun > most) throw new Error(`${tab.where}: expected ${expected}; not so after ${most / 1000} s`);
  }
}

/** The page has drawn its first screen. */
export async function ready(tab: Tab): Promise<Tab> {
  await until(
    tab,
    "weights drawn from a token (data-weights), or of a live page how far its model is (data-state)",
    () => document.querySelector("[data-weights], [data-state]") !== null,
    null,
  );
  return tab;
}

export function heading(tab: Tab): Promise<string> {
  return tab.evaluate(() => document.querySelector("h1")?.innerText.trim() ?? "", null);
}

export function fragment(tab: Tab): Promise<string> {
  return tab.evaluate(() => location.hash.slice(1), null);
}

export function drawn(tab: Tab): Promise<Drawn> {
  return until(
    tab,
    "weights drawn from a token (data-weights)",
    () => {
      const text = document.querySelector("[data-weights]")?.getAttribute("data-weights");
      return text ? (JSON.parse(text) as Drawn) : null;
    },
    null,
  );
}

/** The names of the views that the page has. */
export function views(tab: Tab): Promise<string[]> {
  return tab.evaluate(() => {
    const buttons = [...document.querySelectorAll<HTMLElement>("nav button[data-view]")];
    return buttons.map((button) => button.dataset.view ?? "");
  }, null);
}

/** Those of its views that no other page has: the rest of a live page is that of any page. */
export async function own_views(tab: Tab, page: string): Promise<string[]> {
  return (await views(tab)).filter((view) => page !== "live" || view === "live");
}

/** A button of a view that is marked as chosen. */
const chosen = [
  'nav button[data-view][aria-pressed="true"]',
  'nav button[data-view][aria-selected="true"]',
  'nav button[data-view][aria-current]:not([aria-current="false"])',
].join(", ");

/** The view whose button is marked as chosen. */
export function view(tab: Tab): Promise<string | null> {
  return tab.evaluate((selector) => document.querySelector<HTMLElement>(selector)?.dataset.view ?? null, chosen);
}

export async function go(tab: Tab, to: string): Promise<void> {
  await tab.click(`nav button[data-view="${to}"]`);
  await until(
    tab,
    `the view ${to} after a click on its button in nav`,
    ({ name, selector }) => document.querySelector<HTMLElement>(selector)?.dataset.view === name,
    { name: to, selector: chosen },
  );
  await settled(tab);
}

/** Two frames later: what a change draws is there. */
export function settled(tab: Tab): Promise<void> {
  return tab.evaluate(
    () =>
      new Promise<void>((done) => {
        requestAnimationFrame(() => requestAnimationFrame(() => done()));
      }),
    null,
  );
}

/** Chooses a head by its thumbnail. */
export async function choose(tab: Tab, head: string): Promise<Drawn> {
  await tab.click(`[data-head="${head}"]`);
  return until(
    tab,
    `weights of ${head} after a click on its thumbnail`,
    (name) => {
      const text = document.querySelector("[data-weights]")?.getAttribute("data-weights");
      const shown = text ? (JSON.parse(text) as Drawn) : null;
      return shown?.head === name ? shown : null;
    },
    head,
  );
}

/** The visible text of the page. */
export function seen(tab: Tab): Promise<string> {
  return tab.evaluate(() => document.body.innerText, null);
}

/** What is wider than the screen. */
export function overflowing(tab: Tab): Promise<string[]> {
  return tab.evaluate(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const wide = [...document.querySelectorAll("body *")].filter(
      (element) => element.getBoundingClientRect().right > width + 1,
    );
    const names = wide.slice(0, 5).map((element) => element.outerHTML.slice(0, 80));
    return [`${document.documentElement.scrollWidth} px on ${width} px`, ...names];
  }, null);
}
