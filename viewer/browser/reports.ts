// A circuit, retrieval heads and heads that align, from the reports that the page was given.
import { expect, it } from "vitest";
import { phone, type Open, type Tab } from "./driver";
import { has, page } from "./made";
import { fragment, go, heading, ready, settled } from "./reader";

interface Shown {
  /** Numbers of edges, from the strongest. */
  rows: number[];
  curves: number;
  says: string;
  selected: number;
  lit: number;
}

function shown(): Shown {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-edge]")];
  return {
    rows: rows.map((one) => Number(one.dataset.edge)),
    curves: document.querySelectorAll(".net .edge").length,
    says: document.querySelector<HTMLElement>(".adds")?.innerText ?? "",
    selected: rows.findIndex((one) => one.closest("tr")?.getAttribute("aria-selected") === "true"),
    lit: document.querySelectorAll(".net .edge.lit").length,
  };
}

/** Moves the pointer to the middle of a curve, and clicks there if asked to. */
function on_curve({ number, click }: { number: number; click: boolean }): void {
  const path = document.querySelectorAll<SVGPathElement>(".net .edge")[number];
  const space = document.querySelector(".net .space");
  if (!path || !space) throw new Error(`no curve ${number}`);
  const middle = path.getPointAtLength(path.getTotalLength() / 2);
  const on_screen = new DOMPoint(middle.x, middle.y).matrixTransform(path.getScreenCTM() ?? undefined);
  const where = { clientX: on_screen.x, clientY: on_screen.y, bubbles: true };
  space.dispatchEvent(new PointerEvent("pointermove", where));
  if (click) space.dispatchEvent(new MouseEvent("click", where));
}

function focused(): string {
  return document.activeElement instanceof HTMLElement ? (document.activeElement.dataset.node ?? "") : "";
}

async function circuit_of(open: Open, looks = {}, link = ""): Promise<Tab> {
  const tab = await ready(await open(page("demo").path, looks, link));
  await go(tab, "circuit");
  return tab;
}

export function reports(open: Open): void {
  it.skipIf(!has("demo"))("a circuit's edges are curves and rows, and the strongest remain", async () => {
    const tab = await circuit_of(open);
    expect(await heading(tab), tab.where).toMatch(/^Circuit: \d+ of 529 edges keep \d+ % of the decision$/);
    const all = await tab.evaluate(shown, null);
    expect(all.rows.length, tab.where).toBe(Number(/\d+/.exec(await heading(tab))?.[0]));
    expect(all.curves, `${tab.where}: a curve for each reader`).toBeGreaterThanOrEqual(all.rows.length);
    await tab.click(".slider input");
    await tab.press("Home");
    for (let i = 0; i < 2; i++) await tab.press("ArrowRight");
    await settled(tab);
    expect((await tab.evaluate(shown, null)).rows, `${tab.where}: three edges`).toEqual([0, 1, 2]);
    expect(await fragment(tab), tab.where).toContain("edges=3");
    await tab.click('button[data-do="undo"]');
    await settled(tab);
    expect((await tab.evaluate(shown, null)).rows.length, `${tab.where}: after Undo`).toBeGreaterThan(3);
    expect(tab.faults, tab.where).toEqual([]);
  });

  it.skipIf(!has("demo"))("an edge is read under the pointer, chosen by a click, and stands in the link", async () => {
    const tab = await circuit_of(open);
    const before = await tab.evaluate(shown, null);
    await tab.evaluate(on_curve, { number: before.curves - 1, click: false });
    const pointed = await tab.evaluate(shown, null);
    expect(pointed.says, tab.where).toMatch(/ → .*: score 0\.\d+, effect −?\d\.\d+/);
    expect(pointed.lit, `${tab.where}: curves that stand out`).toBeGreaterThan(0);
    expect(pointed.selected, `${tab.where}: none is chosen yet`).toBe(-1);
    await tab.evaluate(on_curve, { number: before.curves - 1, click: true });
    await settled(tab);
    const clicked = await tab.evaluate(shown, null);
    expect(clicked.selected, `${tab.where}: its row`).toBeGreaterThanOrEqual(0);
    const link = await fragment(tab);
    const again = await circuit_of(open, {}, link.replace("view=circuit", "view=text"));
    expect((await again.evaluate(shown, null)).selected, again.where).toBe(clicked.selected);
    await again.click('[data-edge="2"]');
    await settled(again);
    expect(await fragment(again), again.where).toContain("cell=edge%3A2");
    expect([...tab.faults, ...again.faults], tab.where).toEqual([]);
  });

  it.skipIf(!has("demo"))("heads of a circuit are chosen by keyboard and in all views, on a phone too", async () => {
    const tab = await circuit_of(open, { ...phone });
    const heads = await tab.evaluate(
      () => [...document.querySelectorAll<HTMLElement>(".net [data-head]")].map((one) => one.dataset.head ?? ""),
      null,
    );
    await tab.click(`.net [data-head="${heads[0]}"]`);
    await settled(tab);
    expect((await tab.evaluate(shown, null)).says, tab.where).toMatch(/, head \d+: (\d+ edges? in|\d+ out)/);
    await tab.press("End");
    await settled(tab);
    expect(await tab.evaluate(focused, null), `${tab.where}: the highest row`).toBe("decoder.states");
    await tab.press("ArrowDown");
    await settled(tab);
    expect(await tab.evaluate(focused, null), `${tab.where}: the row below`).toMatch(/^decoder\.1\./);
    await tab.click(`.net [data-head="${heads.at(-1)}"]`);
    await go(tab, "head");
    const [, layer, number] = /\.(\d+)\.\w+\.(\d+)$/.exec(heads.at(-1) ?? "") ?? [];
    expect(await heading(tab), tab.where).toMatch(new RegExp(` ${layer}, head ${number}(:|$)`));
    expect(tab.faults, tab.where).toEqual([]);
  });

  it.skipIf(!has("smollm2"))("a head's scores by length and depth have its score as their mean", async () => {
    const tab = await ready(await open(page("smollm2").path));
    await go(tab, "retrieval");
    expect(await heading(tab), tab.where).toMatch(/^Retrieval: Decoder \d+, head \d copies \d+ % of the answers$/);
    await tab.click(".summing [data-go]");
    await settled(tab);
    const found = await tab.evaluate(
      () => ({
        adds: document.querySelector<HTMLElement>(".adds")?.innerText ?? "",
        copies: Number(document.querySelector<HTMLElement>('.parts [aria-pressed="true"]')?.dataset.copies),
        places: [
          ...(document.querySelector(".summing .places")?.querySelectorAll<HTMLElement>("[data-share]") ?? []),
        ].map((one) => Number(one.dataset.share)),
        heads: document.querySelectorAll(".parts [data-head]").length,
      }),
      null,
    );
    expect(found.heads, tab.where).toBe(270);
    expect(found.adds, `${tab.where}: the best head`).toContain("number 1 of 270 heads by score");
    expect(found.places.length, `${tab.where}: two depths`).toBe(2);
    const mean = found.places.reduce((sum, one) => sum + one, 0) / found.places.length;
    expect(mean, tab.where).toBeCloseTo(found.copies, 3);
    await go(tab, "circuit");
    expect(await heading(tab), tab.where).toMatch(/^Circuit: \d+ of 70,651 edges keep \d+ % of the decision$/);
    expect(tab.faults, tab.where).toEqual([]);
  });

  it.skipIf(!has("demo"))(
    "heads that align are chosen by square and by link, and link the words of the text",
    async () => {
      const tab = await ready(await open(page("demo").path));
      await go(tab, "aligners");
      const says = /^Aligners: (the mean of [234] heads|Cross-attention \d, head \d), alignment error rate [\d.]+ %$/;
      expect(await heading(tab), tab.where).toMatch(says);
      await tab.click(".summing table [data-go]");
      await settled(tab);
      const found = await tab.evaluate(
        () => ({
          adds: document.querySelector<HTMLElement>(".adds")?.innerText ?? "",
          pressed: document.querySelector<HTMLElement>('.parts [aria-pressed="true"]')?.dataset.aligns ?? "",
          squares: [...document.querySelectorAll<HTMLElement>(".parts [data-aligns]")].map((one) =>
            Number(one.dataset.aligns),
          ),
          framed: document.querySelectorAll(".parts .framed").length,
          chosen: document.querySelectorAll(".summing p [data-go]").length,
          rows: [...document.querySelectorAll<HTMLElement>(".summing tbody th")].map((one) => one.innerText),
          words: [...document.querySelectorAll<HTMLElement>(".linked li")].map((one) =>
            [...one.children].map((part) => part.textContent ?? ""),
          ),
        }),
        null,
      );
      expect(found.squares.length, tab.where).toBe(8);
      expect(Number(found.pressed), `${tab.where}: the best head`).toBe(Math.max(...found.squares));
      expect(found.adds, tab.where).toMatch(
        /links a word best by the row .*: precision \d+ %, .*, number 1 of 8 heads\./,
      );
      expect(found.framed, `${tab.where}: as many frames as chosen heads`).toBe(found.chosen);
      expect(found.rows.slice(-2), tab.where).toEqual([
        expect.stringMatching(/^(mean of those|the one) chosen to align$/),
        expect.stringMatching(/^best fixed offset: /),
      ]);
      expect(found.words, `${tab.where}: words with their source words`).toContainEqual(["Hund", "dog"]);
      expect(found.words, tab.where).toContainEqual(["Katze", "cat"]);
      await tab.click('.parts [data-head="decoder.0.cross_attention.1"]');
      await settled(tab);
      const first = await tab.evaluate(() => document.querySelector<HTMLElement>(".adds")?.innerText ?? "", null);
      expect(first, tab.where).toMatch(/^Cross-attention 0, head 1 links a word best by /);
      expect(tab.faults, tab.where).toEqual([]);
    },
  );
}
