// All tests in one browser; chromium.browser.ts and firefox.browser.ts run them beside each other.
import { afterAll, afterEach, beforeAll, describe } from "vitest";
import { choice } from "./choice";
import { exports_of_views } from "./export";
import { hostile } from "./hostile";
import { looks } from "./looks";
import { first_screen } from "./open";
import type { Browser, Kind, Looks, Tab } from "./driver";

/** Opens a page in the browser of the tests, which closes it after the test. */
export type Open = (path: string, looks?: Looks, fragment?: string) => Promise<Tab>;

export function all_tests_in(kind: Kind): void {
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
  for (const tests of [first_screen, choice, looks, exports_of_views, hostile]) tests(open, kind.name);
}
