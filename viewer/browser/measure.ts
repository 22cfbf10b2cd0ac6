// npx vite-node browser/measure.ts PAGE.html ...: how long a reader waits, in each browser, as a Markdown table. No
// test: times depend on the machine.
import { statSync } from "node:fs";
import { basename } from "node:path";
import * as chromium from "./chromium";
import * as firefox from "./firefox";
import { drawn, ready, settled } from "./reader";
import type { Browser } from "./driver";

interface Times {
  /** Seconds from asking for the page to its first screen, drawn. */
  seen: number;
  /**
   * Milliseconds from a click on a thumbnail to the frame after the head is drawn, and for the pointer on another
   * token.
   */
  head: number;
  hover: number;
}

const median = (numbers: number[]): number => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? NaN;

/** Milliseconds from `event` on each of some elements until the frame after it, the longest task included. */
function frames_after(given: { selector: string; event: "click" | "hover"; times: number }): Promise<number[]> {
  const found = [...document.querySelectorAll<HTMLElement>(given.selector)].filter(
    (element) => element.offsetParent !== null,
  );
  const step = Math.max(1, Math.floor(found.length / given.times));
  const some = found.filter((_, i) => i % step === 0).slice(0, given.times);
  const frame = (): Promise<number> =>
    new Promise((done) =>
      requestAnimationFrame(() => {
        const channel = new MessageChannel(); // after the frame is drawn
        channel.port1.onmessage = () => done(performance.now());
        channel.port2.postMessage(null);
      }),
    );
  return (async () => {
    const times: number[] = [];
    for (const element of some) {
      await frame();
      const begun = performance.now();
      if (given.event === "click") {
        element.click();
      } else {
        for (const name of ["pointerover", "pointerenter", "mouseover", "mouseenter", "pointermove", "mousemove"]) {
          element.dispatchEvent(new MouseEvent(name, { bubbles: !name.endsWith("enter"), view: window }));
        }
      }
      times.push((await frame()) - begun);
    }
    return times;
  })();
}

async function measured(browser: Browser, path: string): Promise<Times> {
  const seconds: number[] = [];
  for (let i = 0; i < 3; ++i) {
    const begun = Date.now();
    const tab = await ready(await browser.open(path));
    await settled(tab);
    seconds.push((Date.now() - begun) / 1000);
    await tab.close();
  }
  const tab = await ready(await browser.open(path));
  await drawn(tab);
  const head = median(
    await tab.evaluate(frames_after, { selector: "[data-head]", event: "click" as const, times: 15 }),
  );
  const hover = median(
    await tab.evaluate(frames_after, { selector: "[data-token]", event: "hover" as const, times: 15 }),
  );
  await tab.close();
  return { seen: median(seconds), head, hover };
}

const rows = ["| page | MB | browser | seen after | another head | pointer on a word |", "|---|---|---|---|---|---|"];
for (const path of process.argv.slice(2)) {
  for (const kind of [chromium.kind, firefox.kind]) {
    if (!kind.program) continue;
    const browser = await kind.launch();
    const { seen, head, hover } = await measured(browser, path);
    const size = (statSync(path).size / 1e6).toFixed(1);
    const times = [`${seen.toFixed(2)} s`, `${head.toFixed(0)} ms`, `${hover.toFixed(0)} ms`];
    rows.push(`| ${[basename(path), size, kind.name, ...times].join(" | ")} |`);
    await browser.close();
  }
}
console.log(rows.join("\n"));
