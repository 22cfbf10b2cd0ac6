// npx vite-node browser/measure_live.ts PAGE.html ...: how long a reader of a live page waits, in each browser, as a
// Markdown table. No test: times depend on the machine.
import { statSync } from "node:fs";
import { basename } from "node:path";
import * as chromium from "./chromium";
import type { Browser, Tab } from "./driver";
import * as firefox from "./firefox";
import { until } from "./reader";

interface Times {
  /** Seconds from asking for the page to its recorded run, and from then to the first answer of the model. */
  seen: number;
  first: number;
  /** Milliseconds of a call again, in the worker; and seconds of leaving each head out. */
  again: number;
  each: number;
  /** Milliseconds of the longest task on the page's own thread; null: the browser does not tell. */
  longest: number | null;
}

/** A model of 100 MB takes longer than anything that a test waits for. */
const most = 300_000;

const answered = (): boolean => {
  const lanes = [...document.querySelectorAll<HTMLElement>(".lane .says, .lane .alike")];
  return lanes.length === 2 && lanes.every((lane) => lane.innerText.trim() !== "");
};
const left_out = (): boolean => /Most (is lost|changes) /.test(document.querySelector(".left-out")?.textContent ?? "");

function watch_tasks(): void {
  const longest = window as unknown as { longest: number };
  longest.longest = 0;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) longest.longest = Math.max(longest.longest, duration);
  }).observe({ entryTypes: ["longtask"] });
}

/** Asks for something and takes the time until the lanes stand again. */
async function changed(tab: Tab): Promise<number> {
  const status = () => tab.evaluate(() => document.querySelector<HTMLElement>("[data-state]")?.innerText ?? "", null);
  await tab.click('[data-do="mute"]');
  await new Promise((next) => setTimeout(next, 2_000));
  return Number(/ (\d+) ms/.exec(await status())?.[1] ?? Number.NaN);
}

async function measured(browser: Browser, path: string): Promise<Times> {
  const begun = Date.now();
  const tab = await browser.open(path);
  await until(tab, "the recorded run", () => document.querySelector("[data-state]") !== null, null, most);
  const seen = (Date.now() - begun) / 1000;
  const watches = await tab.evaluate(() => PerformanceObserver.supportedEntryTypes.includes("longtask"), null);
  if (watches) await tab.evaluate(watch_tasks, null);
  await until(tab, "a first answer", answered, null, most);
  const first = (Date.now() - begun) / 1000 - seen;
  const again = await changed(tab);
  await tab.click('[data-do="mute"]');
  await until(tab, "both lanes", answered, null, most);
  const before = Date.now();
  await tab.click('[data-do="each"]');
  await until(tab, "all heads left out", left_out, null, most);
  const each = (Date.now() - before) / 1000;
  const longest = watches ? await tab.evaluate(() => (window as unknown as { longest: number }).longest, null) : null;
  await tab.close();
  return { seen, first, again, each, longest };
}

const rows = [
  "| page | MB | browser | recorded run | first answer after it | last call | each head left out | longest task |",
  "|---|---|---|---|---|---|---|---|",
];
for (const path of process.argv.slice(2)) {
  for (const kind of [chromium.kind, firefox.kind]) {
    if (!kind.program) continue;
    const browser = await kind.launch();
    const { seen, first, again, each, longest } = await measured(browser, path);
    const size = (statSync(path).size / 1e6).toFixed(1);
    const times = [
      `${seen.toFixed(2)} s`,
      `${first.toFixed(2)} s`,
      `${again.toFixed(0)} ms`,
      `${each.toFixed(2)} s`,
      longest === null ? "–" : longest === 0 ? "below 50 ms" : `${longest.toFixed(0)} ms`,
    ];
    rows.push(`| ${[basename(path), size, kind.name, ...times].join(" | ")} |`);
    await browser.close();
  }
}
console.log(rows.join("\n"));
