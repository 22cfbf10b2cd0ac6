// The pages to play with: each to its end by the keyboard alone, a link, every slider's ends, and how it looks.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { phone, type Looks, type Open, type Tab } from "./driver";
import { faults } from "./looks";
import { shots } from "./made";
import { overflowing, until } from "./reader";

const folder = join(__dirname, "../../docs/answers/play");
const pages = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith(".html")) : [];
const named = pages.map((file) => ({ name: file.replace(".html", ""), path: join(folder, file) }));
const most = 60_000;

/** What has the keyboard. */
const focused = (tab: Tab): Promise<string> =>
  tab.evaluate(() => {
    const { activeElement: on } = document;
    if (on instanceof HTMLInputElement) return on.dataset.slider ?? on.name;
    return on instanceof HTMLElement ? (on.dataset.do ?? on.tagName.toLowerCase()) : "";
  }, null);

async function tabTo(tab: Tab, wanted: string): Promise<void> {
  for (let n = 0; n < 60; n++) {
    await tab.press("Tab");
    if ((await focused(tab)) === wanted) return;
  }
  throw new Error(`${tab.where}: Tab does not come to ${wanted}`);
}

/** The page shows what came of a choice: a training is as far as it goes. */
const told = (tab: Tab): Promise<string> =>
  until(
    tab,
    "what happened, in numbers",
    () => {
      const text = document.querySelector<HTMLElement>(".said")?.innerText ?? "";
      const steps = [...document.querySelectorAll<SVGTextElement>(".chart text")].map((one) => one.textContent);
      const reads = document.querySelector("#live") !== null;
      const trains = !reads && document.querySelector("#worker") !== null;
      const shown = !reads || document.querySelector(".rows canvas") !== null;
      return text !== "" && shown && !text.includes("…") && (!trains || steps.includes("1200")) ? text : null;
    },
    null,
    most,
  );

async function guessed(open: Open, path: string, looks: Looks = {}, link = "guess=0"): Promise<Tab> {
  const tab = await open(path, looks, link);
  await told(tab);
  return tab;
}

export function play(open: Open, browser: string): void {
  it.each(named)("$name is played to its end by the keyboard", async ({ path }) => {
    const tab = await open(path);
    const hidden = () => document.querySelector<HTMLElement>(".after")?.hidden ?? false;
    expect(await tab.evaluate(hidden, null), `${tab.where}: nothing is shown before a guess`).toBe(true);
    await tabTo(tab, "guess");
    await tab.press(" ");
    const before = await told(tab);
    const verdict = await tab.evaluate(() => document.querySelector<HTMLElement>(".verdict")?.innerText ?? "", null);
    expect(verdict, tab.where).toMatch(/^(Yes\.|No\. Right is “.*”\.) .{10,}/);
    const sliders = await tab.evaluate(
      () => [...document.querySelectorAll<HTMLInputElement>("[data-slider]")].map((one) => one.dataset.slider ?? ""),
      null,
    );
    expect(sliders.length, tab.where).toBeGreaterThanOrEqual(3);
    await tabTo(tab, sliders[0] as string);
    await tab.press("End");
    await until(tab, "other numbers", (old) => document.querySelector<HTMLElement>(".said")?.innerText !== old, before);
    await told(tab);
    await tabTo(tab, "canvas");
    await tab.press("ArrowDown");
    await tab.press("ArrowRight");
    await until(
      tab,
      "the sum of a cell",
      () => document.querySelector(".sum[data-cell]:not([data-cell=''])") !== null,
      null,
    );
    await tabTo(tab, "answer");
    await tab.press("Enter");
    const answer = await tab.evaluate(() => document.querySelector<HTMLElement>(".answer")?.innerText ?? "", null);
    expect(answer.length, `${tab.where}: the answer`).toBeGreaterThan(60);
    const again = await guessed(open, path, {}, await tab.evaluate(() => location.hash.slice(1), null));
    // What was tried before is known to the page that tried it.
    const course = async (of: Tab) => (await told(of)).split("\n")[0];
    expect(await course(again), `${again.where}: a link shows the same`).toBe(await course(tab));
    expect(await again.evaluate(() => document.querySelector<HTMLElement>(".answer")?.hidden, null)).toBe(false);
    expect([...tab.faults, ...again.faults], tab.where).toEqual([]);
  });

  it.each(named)("$name shows numbers at both ends of every slider", async ({ path }) => {
    const tab = await guessed(open, path);
    const sliders = await tab.evaluate(
      () => [...document.querySelectorAll<HTMLInputElement>("[data-slider]")].map((one) => one.dataset.slider ?? ""),
      null,
    );
    for (const name of sliders) {
      for (const end of ["min", "max"] as const) {
        await tab.evaluate(
          ([slider, to]) => {
            const input = document.querySelector<HTMLInputElement>(`[data-slider="${slider}"]`);
            if (!input) throw new Error("no slider");
            input.value = to === "min" ? input.min : input.max;
            input.dispatchEvent(new Event("input", { bubbles: true }));
          },
          [name, end] as const,
        );
        expect(await told(tab), `${tab.where}, ${name} ${end}`).not.toMatch(/NaN|undefined|–\./);
      }
    }
    expect(tab.faults, tab.where).toEqual([]);
  });

  const modes: { mode: string; looks: Looks }[] = [
    { mode: "light", looks: {} },
    { mode: "dark", looks: { dark: true } },
    { mode: "phone", looks: { ...phone } },
  ];
  it.each(named.flatMap((one) => modes.map((mode) => ({ ...one, ...mode }))))(
    "$name looks well, $mode",
    async ({ name, path, looks, mode }) => {
      const tab = await guessed(open, path, looks, "guess=0&answered=1");
      await tab.screenshot(join(shots, `play-${name}-${mode}-${browser.toLowerCase()}.png`), true);
      expect([...(await faults(tab)), ...(await overflowing(tab)), ...tab.faults], tab.where).toEqual([]);
      if (await tab.as_printed(true)) {
        const slider = () => getComputedStyle(document.querySelector("[data-slider]") as Element).display;
        expect(await tab.evaluate(slider, null), `${tab.where}: printed without sliders`).toBe("none");
      }
    },
  );

  it.each(named)("$name asks nobody for anything", ({ name, path }) => {
    const html = readFileSync(path, "utf8");
    const policy = /<meta http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(html)?.[1] ?? "";
    expect(policy, name).toMatch(
      /^default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'; form-action 'none'; /,
    );
    // A page with a model in it compiles that, and nothing else.
    const other = html.includes('<script id="live"') ? policy.replace(" 'wasm-unsafe-eval'", "") : policy;
    expect(other, name).not.toMatch(/unsafe|https?:|\*|connect-src/);
    expect(html.length, name).toBeLessThan(3e6);
  });

  const live = named.filter(({ path }) => readFileSync(path, "utf8").includes('<script id="live"'));
  it.each(live)("$name reads the reader's sentence, by the keyboard", async ({ path }) => {
    const tab = await guessed(open, path);
    const before = await told(tab);
    await tabTo(tab, "text");
    await tab.press("Control+a");
    for (const key of "<b>two men </b>") await tab.press(key);
    await tab.press("Enter");
    const own = await until(
      tab,
      "another translation",
      (old) => {
        const text = document.querySelector<HTMLElement>(".said")?.innerText ?? "";
        return text !== old ? text : null;
      },
      before,
    );
    expect(own, tab.where).toMatch(/translation: “.+”/);
    expect(await tab.evaluate(() => document.querySelector(".said b") === null, null), "text stays text").toBe(true);
    const link = await tab.evaluate(() => location.hash.slice(1), null);
    expect(new URLSearchParams(link).get("text")).toBe("<b>two men </b>");
    expect(await told(await guessed(open, path, {}, link)), `${tab.where}: a link shows the same`).toBe(own);
    expect(tab.faults, tab.where).toEqual([]);
  });
}
