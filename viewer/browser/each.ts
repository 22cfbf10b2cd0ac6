// The tests of one browser, in two halves that take about as long; *.browser.ts run all halves beside each other.
import { afterAll, afterEach, beforeAll, describe } from "vitest";
import { choice } from "./choice";
import { exports_of_views } from "./export";
import { hostile } from "./hostile";
import { importance } from "./importance";
import { looks } from "./looks";
import { live } from "./live";
import { notebook } from "./notebook";
import { first_screen } from "./open";
import { parts } from "./parts";
import { play } from "./play";
import { reports } from "./reports";
import { walk } from "./walk";
import type { Browser, Kind, Open, Tab } from "./driver";

type Tests = (open: Open, browser: string) => void;

export const does: Tests[] = [
  first_screen,
  choice,
  walk,
  importance,
  parts,
  reports,
  live,
  exports_of_views,
  hostile,
  notebook,
  play,
];
export const seems: Tests[] = [looks];

export function tests_in(kind: Kind, some: Tests[]): void {
  if (!kind.program) {
    describe.skip(`${kind.name} is not installed`, () => {});
    return;
  }
  let browser: Browser;
  let tabs: Tab[] = [];
  beforeAll(async () => {
    browser = await kind.launch();
  });
  afterAll(() => browser.close());
  afterEach(async () => {
    await Promise.all(tabs.map((tab) => tab.close()));
    tabs = [];
  });
  const open: Open = async (path, looks, fragment) => {
    const tab = await browser.open(path, looks, fragment);
    tabs.push(tab);
    return tab;
  };
  for (const tests of some) tests(open, kind.name);
}
