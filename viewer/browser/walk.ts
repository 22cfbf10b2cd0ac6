// The walk: every step by the arrow keys, forth and back, on a screen and on a phone.
import { expect, it } from "vitest";
import { phone, type Open, type Tab } from "./driver";
import { all, has, page } from "./made";
import { go, overflowing, ready, settled, until, views } from "./reader";

interface Step {
  number: number;
  title: string;
  formulas: string;
  figures: number;
}

function step(tab: Tab): Promise<Step> {
  return until(
    tab,
    "a step of the walk marked as the current one",
    () => {
      const item = document.querySelector<HTMLElement>('li[aria-current="step"]');
      const button = item?.querySelector<HTMLElement>("[data-step]");
      if (!item || !button) return null;
      return {
        number: Number(button.dataset.step),
        title: button.innerText.trim(),
        formulas: item.innerText.trim(),
        figures: [...document.querySelectorAll<HTMLCanvasElement>(".view canvas")].filter(
          (canvas) => canvas.offsetParent !== null && canvas.width > 1,
        ).length,
      };
    },
    null,
  );
}

export function walk(open: Open): void {
  it.runIf(has("demo")).each(all.filter(({ name }) => ["demo", "minilm", "smollm2"].includes(name)))(
    "a walk through $name",
    async ({ name, path }) => {
      const tab = await ready(await open(path, name === "demo" ? { ...phone } : {}));
      expect(await views(tab), tab.where).toContain("walk");
      await go(tab, "walk");
      const steps = await tab.evaluate(() => document.querySelectorAll("li [data-step]").length, null);
      expect(steps, `${tab.where}: steps of the walk`).toBeGreaterThanOrEqual(8);
      for (let i = 0; i < steps; ++i) {
        const now = await step(tab);
        const place = `${tab.where}, step ${i + 1}, ${now.title}`;
        expect(now.number, `${place}: its number after ${i} times ArrowRight`).toBe(i);
        expect(now.formulas.length, `${place}: has a formula beside its title`).toBeGreaterThan(now.title.length + 2);
        expect(now.figures, `${place}: drawn matrices`).toBeGreaterThan(0);
        expect(await overflowing(tab), `${place}: what scrolls sideways`).toEqual([]);
        await tab.press("ArrowRight");
        await settled(tab);
      }
      expect((await step(tab)).number, `${tab.where}: ArrowRight stays at the last step`).toBe(steps - 1);
      await tab.press("ArrowLeft");
      await settled(tab);
      expect((await step(tab)).number, `${tab.where}: the step after ArrowLeft`).toBe(steps - 2);
      await tab.click('button[data-do="back"]');
      await tab.click('button[data-do="next"]');
      await settled(tab);
      expect((await step(tab)).number, `${tab.where}: the step after Back and Next`).toBe(steps - 2);
      expect(tab.faults, tab.where).toEqual([]);
    },
  );

  it.skipIf(!has("demo"))("a cell of the walk opens the sum that it comes from", async () => {
    const made = page("demo");
    const tab = await open(made.path, {}, "view=walk&head=encoder.0.self_attention.1&query=2&step=4");
    expect((await step(tab)).number, `${tab.where}: the step of the link`).toBe(4);
    const scores = await tab.evaluate(() => {
      const symbol = document.querySelector<HTMLElement>('li[aria-current="step"] [data-symbol]');
      return symbol?.dataset.symbol ?? "";
    }, null);
    expect(scores, `${tab.where}: the matrix of scores has a symbol`).not.toBe("");
    const score = async (column: number): Promise<number> => {
      const cell = `${scores}:2:${column}`;
      await tab.evaluate((to) => {
        location.hash = location.hash.replace(/&cell=.*|$/, `&cell=${to}`);
      }, cell);
      return until(
        tab,
        `"${scores}[2, ${column}] = NUMBER" above its products`,
        (column) => {
          const sum = document.querySelector<HTMLElement>(".sum")?.innerText ?? "";
          const found = /\[2, (\d+)\] = ([−-]?[\d.]+)\s[\s\S]*products/.exec(sum);
          return found && Number(found[1]) === column ? Number((found[2] ?? "").replace("−", "-")) : null;
        },
        column,
      );
    };
    // The tool's weights are the softmax of these scores over √d_key, and d_key is 24 in the demo.
    const row = made.weights?.["encoder.0.self_attention.1"]?.[2] ?? [];
    const expected = Math.log((row[5] ?? NaN) / (row[3] ?? NaN));
    expect(
      ((await score(5)) - (await score(3))) / Math.sqrt(24),
      `${tab.where}: log of the weights' quotient, from ${scores}`,
    ).toBeCloseTo(expected, 1);
    expect(tab.faults, tab.where).toEqual([]);
  });
}
