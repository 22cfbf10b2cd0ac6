// What heads add to what the model says, and what it would say after each layer.
import { expect, it } from "vitest";
import type { Open, Tab } from "./driver";
import { has, page } from "./made";
import { fragment, go, heading, ready, settled } from "./reader";

const value = (text: string): number => Number(text.replaceAll("−", "-"));

/** The figures of the sum, of which the last is the whole. */
function sums(): string[] {
  return [...document.querySelectorAll(".totals td")].map((cell) => cell.textContent ?? "");
}

/** The chosen head, what it adds, its sentence, and the scores of the tokens that it reads. */
function adding(): { head: string; adds: number; says: string; scores: number[] } {
  const button = document.querySelector<HTMLElement>('.parts [data-head][aria-pressed="true"]');
  return {
    head: button?.dataset.head ?? "",
    adds: Number(button?.dataset.adds),
    says: document.querySelector<HTMLElement>(".adds")?.innerText ?? "",
    scores: [...document.querySelectorAll<HTMLElement>(".adding [data-score]")].map((one) => Number(one.dataset.score)),
  };
}

function told(): string {
  return document.querySelector<HTMLElement>(".says")?.innerText ?? "";
}

function chosen(): string {
  return document.querySelector<HTMLElement>('[data-cell][aria-pressed="true"]')?.dataset.cell ?? "";
}

async function expect_sum(tab: Tab, head: string): Promise<void> {
  const found = await tab.evaluate(adding, null);
  expect(found.head, `${tab.where}: the chosen head`).toBe(head);
  expect(found.says, tab.where).toMatch(
    / (adds|takes) [\d.]+(e−\d+)? (to|from) the logit of “Katze”: number \d+ of 16/,
  );
  const sum = found.scores.reduce((all, one) => all + one, 0);
  expect(found.scores.length, `${tab.where}: tokens that ${head} reads`).toBeGreaterThan(5);
  expect(sum, `${tab.where}: the tokens of ${head} add up to it`).toBeCloseTo(found.adds, 2);
}

export function parts(open: Open): void {
  it.skipIf(!has("demo"))(
    "what a translation's heads add sums to its logit, and a head's tokens to the head",
    async () => {
      const tab = await ready(await open(page("demo").path));
      await go(tab, "contributions");
      const whole = /^Contributions: logit of “Katze”, ([\d.]+)$/.exec(await heading(tab));
      expect(whole, `${tab.where}: ${await heading(tab)}`).not.toBeNull();
      const lines = (await tab.evaluate(sums, null)).map(value);
      const last = lines.pop() ?? 0;
      expect(last, `${tab.where}: the whole`).toBeCloseTo(Number(whole?.[1]), 1);
      expect(
        lines.reduce((all, one) => all + one, 0),
        `${tab.where}: the lines add up`,
      ).toBeCloseTo(last, 0);
      await tab.click('[data-head="decoder.1.cross_attention.0"]');
      await settled(tab);
      await expect_sum(tab, "decoder.1.cross_attention.0");
      await tab.press("ArrowRight");
      await settled(tab);
      await expect_sum(tab, "decoder.1.cross_attention.1");
      await tab.click('.summing [data-go="decoder.1.cross_attention.3"]');
      await settled(tab);
      await expect_sum(tab, "decoder.1.cross_attention.3");
      expect(await fragment(tab), `${tab.where}: a link to it`).toContain("head=decoder.1.cross_attention.3");
      await go(tab, "head");
      expect(await heading(tab), `${tab.where}: the same head in its view`).toMatch(/^Cross-attention 1, head 3: /);
      expect(tab.faults, tab.where).toEqual([]);
    },
  );

  it.skipIf(!has("demo"))("the lens says each layer's words, by pointer and by keyboard", async () => {
    const tab = await ready(await open(page("demo").path, {}, "head=decoder.1.cross_attention.0&query=2"));
    await go(tab, "lens");
    expect(await heading(tab), tab.where).toMatch(/^Lens: at “kleine”, “Hund” comes first /);
    expect(await tab.evaluate(chosen, null), `${tab.where}: the token in focus, after the last layer`).toBe("2:2");
    expect(await tab.evaluate(told, null), tab.where).toMatch(/^After layer 1, the last, at kleine: Hund 100 %, /);
    await tab.point('[data-cell="0:3"]');
    expect(await tab.evaluate(told, null), `${tab.where}: under the pointer`).toMatch(/^The embeddings, at Hund: /);
    await tab.click('[data-cell="2:3"]');
    await tab.press("ArrowUp");
    await settled(tab);
    expect(await tab.evaluate(chosen, null), `${tab.where}: a row higher`).toBe("1:3");
    const link = await fragment(tab);
    expect(link, tab.where).toContain("query=3");
    const again = await ready(await open(page("demo").path, {}, link.replace("view=lens", "view=text")));
    await go(again, "lens");
    expect(await again.evaluate(chosen, null), `${again.where}: the link shows the same`).toBe("1:3");
    const shares = await tab.evaluate(
      () =>
        [...document.querySelectorAll<HTMLElement>("tbody tr:last-child [data-share]")].map((one) =>
          Number(one.dataset.share),
        ),
      null,
    );
    expect(Math.min(...shares), `${tab.where}: the demo is sure of its translation in the end`).toBeGreaterThan(0.9);
    expect([...tab.faults, ...again.faults], tab.where).toEqual([]);
  });

  it.skipIf(!has("minilm"))("of vectors the lens has cosines, the last of which is 1", async () => {
    const tab = await ready(await open(page("minilm").path));
    await go(tab, "lens");
    const cells = await tab.evaluate(
      () => [...document.querySelectorAll("tbody tr:last-child td")].map((cell) => cell.textContent ?? ""),
      null,
    );
    expect(cells[0], `${tab.where}: with the text's own vector`).toBe("1.00");
    expect(cells.length, `${tab.where}: and with the other text's`).toBe(2);
  });

  it.skipIf(!has("long"))("a long text has no lens, and the page names the verb that makes one", async () => {
    const tab = await ready(await open(page("long").path));
    await go(tab, "lens");
    const text = await tab.evaluate(() => document.querySelector<HTMLElement>(".lenses")?.innerText ?? "", null);
    expect(text, tab.where).toMatch(/^The text has \d+ tokens, .*`multihead heads lens`/);
  });
}
