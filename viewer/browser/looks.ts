// Every view in light, dark, on a phone, with reduced motion and printed; axe-core's opinion; a screenshot of each.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { AxeResults } from "axe-core";
import { expect, it } from "vitest";
import { phone, type Looks, type Open, type Tab } from "./driver";
import { all, each_view, shots, type Made } from "./made";
import { go, overflowing, own_views, ready, seen, settled, views } from "./reader";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Serious and critical faults that axe-core finds: "color-contrast at .foot: …". */
export async function faults(tab: Tab): Promise<string[]> {
  await tab.run(axe);
  return tab.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run(): Promise<AxeResults> } };
    const serious = (await axe.run()).violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    return serious.flatMap(({ id, nodes }) =>
      nodes
        .slice(0, 5)
        .map(
          ({ target, failureSummary }) =>
            `${id} at ${target.join(" ")}: ${(failureSummary ?? "").replace(/\s+/g, " ")}`,
        ),
    );
  }, null);
}

const modes: { name: string; looks: Looks; pages: Made[] }[] = [
  { name: "light", looks: {}, pages: all },
  { name: "dark", looks: { dark: true }, pages: each_view },
  { name: "phone", looks: { ...phone }, pages: all },
];

export function looks(open: Open, browser: string): void {
  for (const { name: mode, looks, pages } of modes) {
    it.each(pages)(`each view of $name, ${mode}`, async ({ name, path }) => {
      const tab = await ready(await open(path, looks));
      const found: string[] = [];
      expect(await views(tab), `${tab.where}: views in nav`).toContain("head");
      for (const view of await own_views(tab, name)) {
        await go(tab, view);
        await tab.screenshot(join(shots, `${name}-${view}-${mode}-${browser.toLowerCase()}.png`), true);
        found.push(...(await faults(tab)).map((fault) => `${tab.where}, view ${view}: ${fault}`));
        found.push(
          ...(await overflowing(tab)).map(
            (fault) => `${tab.where}, view ${view}: expected no horizontal scrolling: ${fault}`,
          ),
        );
      }
      expect([...found, ...tab.faults], tab.where).toEqual([]);
    });
  }

  it.each(all.slice(0, 1))("$name is dark where the reader wants it so", async ({ path }) => {
    const light_of = async (looks: Looks): Promise<number> => {
      const tab = await ready(await open(path, looks));
      return tab.evaluate(() => {
        const back = [document.body, document.documentElement].map(
          (element) => getComputedStyle(element).backgroundColor,
        );
        const parts =
          (back.find((color) => color !== "rgba(0, 0, 0, 0)") ?? "rgb(255, 255, 255)").match(/[\d.]+/g) ?? [];
        return parts.slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3;
      }, null);
    };
    expect(await light_of({}), `${browser}: the background in light mode, 0 to 255`).toBeGreaterThan(200);
    expect(await light_of({ dark: true }), `${browser}: the background in dark mode, 0 to 255`).toBeLessThan(64);
  });

  it.each(all.slice(0, 1))("nothing in $name moves under reduced motion", async ({ path }) => {
    const tab = await ready(await open(path, { still: true }));
    for (const view of await views(tab)) {
      await go(tab, view);
      const moving = await tab.evaluate(() => {
        const slow = [...document.querySelectorAll("*")].filter((element) => {
          const style = getComputedStyle(element);
          const longest = (times: string): number => Math.max(...times.split(",").map((time) => parseFloat(time)));
          return (
            longest(style.transitionDuration) > 0.01 ||
            (style.animationName !== "none" && longest(style.animationDuration) > 0.01)
          );
        });
        return [
          ...slow.map((element) => element.outerHTML.slice(0, 80)),
          ...document.getAnimations().map((one) => one.playState),
        ];
      }, null);
      expect(moving, `${tab.where}, view ${view}: what moves`).toEqual([]);
    }
  });

  it.each(each_view)("$name prints", async ({ name, path }) => {
    const tab = await ready(await open(path, { dark: true }));
    for (const view of await views(tab)) {
      await go(tab, view);
      const pdf = await tab.pdf();
      const pages = pdf.toString("latin1").match(/\/Type\s*\/Page\b/g)?.length ?? 0;
      expect(pdf.subarray(0, 5).toString(), `${tab.where}, view ${view}`).toBe("%PDF-");
      expect(pdf.length, `${tab.where}, view ${view}: bytes of the PDF`).toBeGreaterThan(4000);
      if (browser === "Chromium") expect(pages, `${tab.where}, view ${view}: printed pages`).toBeGreaterThan(0);
      if (!(await tab.as_printed(true))) continue;
      await settled(tab);
      const text = await seen(tab);
      expect(text.trim().length, `${tab.where}, view ${view}: characters when printed`).toBeGreaterThan(40);
      const buttons = await tab.evaluate(
        () =>
          [...document.querySelectorAll<HTMLElement>("nav button[data-view]")].filter(
            (button) => button.offsetParent !== null,
          ).length,
        null,
      );
      expect(buttons, `${tab.where}, view ${view}: buttons of nav when printed`).toBe(0);
      const back = await tab.evaluate(() => getComputedStyle(document.body).backgroundColor, null);
      expect(["rgb(255, 255, 255)", "rgba(0, 0, 0, 0)"], `${tab.where}, view ${view}: paper is white`).toContain(back);
      expect(await faults(tab), `${tab.where}, view ${view}, printed`).toEqual([]);
      await tab.screenshot(join(shots, `${name}-${view}-print-${browser.toLowerCase()}.png`), true);
      await tab.as_printed(false);
    }
  });
}
