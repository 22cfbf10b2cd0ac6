// A choice holds everywhere: by keyboard, in the address, through Undo.
import { expect, it } from "vitest";
import { each_view, has, page } from "./made";
import { choose, drawn, fragment, go, heading, ready, settled, until, view, views } from "./reader";
import type { Open, Tab } from "./driver";

/** Presses `key` until the focus is on an element that `selector` matches; returns how often. */
async function reach(tab: Tab, key: string, selector: string, most: number): Promise<number> {
  for (let times = 1; times <= most; ++times) {
    await tab.press(key);
    if (await tab.evaluate((what) => document.activeElement?.matches(what) ?? false, selector)) return times;
  }
  const last = await tab.evaluate(() => document.activeElement?.outerHTML.slice(0, 120) ?? "nothing", null);
  throw new Error(`${tab.where}: expected ${key} to reach ${selector} within ${most} times; it ended on ${last}`);
}

/** Whether the element in focus shows that it is. */
function focus_is_seen(tab: Tab): Promise<boolean> {
  return tab.evaluate(() => {
    const element = document.activeElement;
    if (!element) return false;
    const style = getComputedStyle(element);
    return (style.outlineStyle !== "none" && style.outlineWidth !== "0px") || style.boxShadow !== "none";
  }, null);
}

function pressed_head(tab: Tab): Promise<string[]> {
  return tab.evaluate(() => {
    const chosen = [...document.querySelectorAll<HTMLElement>('[data-head][aria-pressed="true"]')];
    return [...new Set(chosen.map((element) => element.dataset.head ?? ""))];
  }, null);
}

/** A head of the grid that is not the chosen one. */
async function another_head(tab: Tab): Promise<string> {
  const { head } = await drawn(tab);
  return until(
    tab,
    "a thumbnail of another head",
    (now) => {
      const names = [...document.querySelectorAll<HTMLElement>("[data-head]")].map((element) => element.dataset.head);
      return names.filter((name) => name !== now).at(-1);
    },
    head,
  );
}

function weights_are_of(head: string): boolean {
  return document.querySelector("[data-weights]")?.getAttribute("data-weights")?.includes(`"${head}"`) ?? false;
}

export function choice(open: Open): void {
  it.skipIf(!has("demo"))(
    "the keyboard reaches the grid by Tab; arrow keys choose other heads; Undo and Redo go back and forth",
    async () => {
      const tab = await ready(await open(page("demo").path));
      const first = await drawn(tab);
      await reach(tab, "Tab", "[data-head]", 60);
      expect(await focus_is_seen(tab), `${tab.where}: the thumbnail in focus has an outline`).toBe(true);
      const passed = [first.head];
      for (const keys of [
        ["ArrowRight", "ArrowLeft"],
        ["ArrowDown", "ArrowUp"],
      ]) {
        let next = passed.at(-1);
        for (const key of keys) {
          // the second leads back from the grid's last column or row
          await tab.press(key);
          await tab.press("Enter");
          await settled(tab);
          next = (await drawn(tab)).head;
          if (next !== passed.at(-1)) break;
        }
        expect(next, `${tab.where}: the head after ${keys.join(" or ")} on ${passed.at(-1)}`).not.toBe(passed.at(-1));
        passed.push(next ?? "");
        expect(await pressed_head(tab), `${tab.where}: the thumbnail that is pressed`).toEqual([next]);
      }
      for (const head of [passed[1], passed[0]]) {
        await reach(tab, "Shift+Tab", 'button[data-do="undo"]', 60);
        await tab.press("Enter");
        await until(tab, `${head} after Undo`, weights_are_of, head ?? "");
        if (head === passed[1]) await reach(tab, "Tab", "[data-head]", 60);
      }
      await reach(tab, "Tab", 'button[data-do="redo"]', 60);
      await tab.press("Enter");
      await until(tab, `${passed[1]} after Redo`, weights_are_of, passed[1] ?? "");
      expect(tab.faults, tab.where).toEqual([]);
    },
  );

  it.skipIf(!has("demo"))("the keyboard chooses a token and a view", async () => {
    const tab = await ready(await open(page("demo").path));
    const before = await drawn(tab);
    const side = before.head.startsWith("encoder") ? "source" : "target"; // where the queries are
    await reach(tab, "Tab", `[data-token^="${side}:"]`, 80);
    for (const key of ["ArrowRight", "ArrowLeft"]) {
      await tab.press(key);
      await tab.press("Enter");
    }
    await tab.press(before.query === 0 ? "ArrowRight" : "ArrowLeft");
    await settled(tab);
    const token = await tab.evaluate(() => (document.activeElement as HTMLElement).dataset.token ?? "nothing", null);
    const after = await drawn(tab);
    expect(token, `${tab.where}: the token in focus is the query`).toBe(`${side}:${after.query}`);
    expect(after.query, `${tab.where}: the query after an arrow key`).not.toBe(before.query);
    for (const name of await views(tab)) {
      await tab.evaluate(() => (document.activeElement as HTMLElement | null)?.blur(), null);
      await tab.evaluate((to) => document.querySelector<HTMLElement>(`nav button[data-view="${to}"]`)?.focus(), name);
      await tab.press("Enter");
      await until(
        tab,
        `the view ${name} after Enter on its button`,
        (to) => location.hash.includes(`view=${to}`),
        name,
      );
    }
    expect(tab.faults, tab.where).toEqual([]);
  });

  it.each(each_view)("a link to a choice in $name shows the same", async ({ path }) => {
    const tab = await ready(await open(path));
    const other = await another_head(tab);
    const shown = await choose(tab, other);
    const link = await fragment(tab);
    expect(link, `${tab.where}: the fragment after choosing ${other}`).toContain(`head=${other}`);
    const words = await heading(tab);
    const links = new Map<string, string>();
    for (const name of await views(tab)) {
      await go(tab, name);
      links.set(name, await fragment(tab));
    }
    // A browser draws the tab in front alone, so this one has done its part.
    const friend = await ready(await open(path, {}, link));
    expect(await drawn(friend), `${friend.where}: weights at #${link}`).toEqual(shown);
    expect(await heading(friend), `${friend.where}: heading at #${link}`).toBe(words);
    expect(await pressed_head(friend), `${friend.where}: the thumbnail pressed at #${link}`).toEqual([other]);
    for (const [name, place] of links) {
      const there = await open(path, {}, place);
      await until(there, "views in nav", () => document.querySelector("nav button[data-view]") !== null, null);
      expect(await view(there), `${there.where}: the view at #${place}`).toBe(name);
      expect(there.faults, `${there.where} at #${place}`).toEqual([]);
    }
  });

  it.each(each_view)(
    "changing the address of $name changes the choice; nonsense in it does no harm",
    async ({ path }) => {
      const tab = await open(path, {}, "view=nowhere&head=encoder.99.self_attention.0&query=-7&text=1e9&run=x&%ff");
      await ready(tab);
      expect((await heading(tab)).length, `${tab.where}: a heading in spite of a broken fragment`).toBeGreaterThan(3);
      const other = await another_head(tab);
      await tab.evaluate((head) => {
        location.hash = `#view=head&head=${head}`;
      }, other);
      await until(tab, `${other} after a change of the address`, weights_are_of, other);
      expect(tab.faults, tab.where).toEqual([]);
    },
  );

  it.skipIf(!has("demo"))("Undo takes back every switch, choice and field of every view", async () => {
    const tab = await ready(await open(page("demo").path));
    await choose(tab, await another_head(tab));
    for (const name of await views(tab)) {
      await go(tab, name);
      const controls = await tab.evaluate(() => {
        const all = [
          ...document.querySelectorAll<HTMLElement>(
            "main :is(input, select, button[aria-pressed]:not([data-head], [data-token]))",
          ),
        ];
        return all.filter((control) => control.offsetParent !== null && !control.closest("nav")).length;
      }, null);
      for (let i = 0; i < controls; ++i) {
        const before = await fragment(tab);
        const control = await tab.evaluate((index) => {
          const all = [
            ...document.querySelectorAll<HTMLElement>(
              "main :is(input, select, button[aria-pressed]:not([data-head], [data-token]))",
            ),
          ];
          const one = all.filter((element) => element.offsetParent !== null && !element.closest("nav"))[index];
          if (one instanceof HTMLSelectElement) {
            one.selectedIndex = (one.selectedIndex + 1) % one.options.length;
            one.dispatchEvent(new Event("change", { bubbles: true }));
          } else if (one instanceof HTMLInputElement && one.type !== "checkbox") {
            one.value = one.type === "range" ? (one.value === one.min ? one.max : one.min) : "0";
            one.dispatchEvent(new Event("input", { bubbles: true }));
            one.dispatchEvent(new Event("change", { bubbles: true }));
          } else {
            one?.click();
          }
          return one?.outerHTML.slice(0, 100) ?? "none";
        }, i);
        await settled(tab);
        if ((await fragment(tab)) === before) continue; // pressed already
        await tab.click('button[data-do="undo"]');
        await settled(tab);
        expect(await fragment(tab), `${tab.where}, view ${name}: the fragment after Undo of ${control}`).toBe(before);
      }
    }
    expect(tab.faults, tab.where).toEqual([]);
  });

  it.skipIf(!has("demo"))("the pointer shows another word for as long as it is there", async () => {
    const tab = await ready(await open(page("demo").path));
    const chosen = await drawn(tab);
    const before = await fragment(tab);
    const side = chosen.head.startsWith("encoder") ? "source" : "target";
    const other = chosen.query === 3 ? 2 : 3;
    await tab.point(`[data-token="${side}:${other}"]`);
    await settled(tab);
    expect((await drawn(tab)).query, `${tab.where}: the query under the pointer`).toBe(other);
    await tab.point("h1");
    await settled(tab);
    expect(await drawn(tab), `${tab.where}: what is drawn when the pointer has left`).toEqual(chosen);
    expect(await fragment(tab), `${tab.where}: pointing chooses nothing`).toBe(before);
  });
}
