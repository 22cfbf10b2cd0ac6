// The same tests in each browser that this machine has.
import { afterAll, afterEach, beforeAll, describe } from "vitest";
import * as chromium from "./chromium";
import * as firefox from "./firefox";
import type { Browser, Looks, Tab } from "./driver";

export type Open = (path: string, looks?: Looks, fragment?: string) => Promise<Tab>;

/** `tests` gets a function that opens a page in the browser; what it has opened is closed after each test. */
export function in_each_browser(tests: (open: Open, browser: string) => void): void {
  for (const kind of [chromium.kind, firefox.kind]) {
    if (!kind.program) {
      describe.skip(`${kind.name} is not installed`, () => {});
      continue;
    }
    describe(kind.name, () => {
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
      tests(async (path, looks, fragment) => {
        const tab = await browser.open(path, looks, fragment);
        tabs.push(tab);
        return tab;
      }, kind.name);
    });
  }
}
