// The model in the page: texts of the reader's own, changed heads, leaving each out, links, damaged pages.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import type { Looks, Open, Tab } from "./driver";
import { has, page, told } from "./made";
import { drawn, fragment, go, heading, ready, until } from "./reader";

const folder = mkdtempSync(join(tmpdir(), "viewer-live-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const changedHead = "decoder.1.cross_attention.0";

interface Shown {
  state: string;
  status: string;
  /** What stands in the lanes, words that the other lane has not in stars. */
  lanes: string[];
  differs: string;
  scores: number[];
  result: string;
}

function shown(): Shown {
  const text = (element: Element | null): string => (element instanceof HTMLElement ? element.innerText.trim() : "");
  const status = document.querySelector<HTMLElement>("[data-state]");
  const lane = (one: Element): string =>
    [...one.querySelectorAll(".says bdi, .alike")]
      .flatMap((words) => [...words.childNodes])
      .map((node) => (node.nodeName === "MARK" ? `*${node.textContent}*` : node.textContent))
      .join("");
  return {
    state: status?.dataset.state ?? "",
    status: text(status),
    lanes: [...document.querySelectorAll(".lane")].map(lane),
    differs: text(document.querySelector(".differs")),
    scores: [...document.querySelectorAll<HTMLElement>(".living .scores [data-score]")].map((one) =>
      Number(one.dataset.score),
    ),
    result: text(document.querySelector(".left-out")),
  };
}

/** Waits until both lanes say something. */
async function answered(tab: Tab, lanes: [string, string]): Promise<Shown> {
  await until(
    tab,
    `the lanes "${lanes.join('" and "')}"`,
    (wanted) => {
      const found = [...document.querySelectorAll<HTMLElement>(".lane .says, .lane .alike")].map((one) =>
        one.innerText.trim(),
      );
      return found.length === 2 && found.every((text, i) => text === wanted[i]);
    },
    lanes,
  );
  return tab.evaluate(shown, null);
}

/** Types over what stands in the box. */
function typed(tab: Tab, text: string): Promise<void> {
  return tab.evaluate((words) => {
    const box = document.querySelector<HTMLTextAreaElement>('[data-box="typed"]');
    if (!box) throw new Error("no box for a text");
    box.focus();
    box.value = words;
    box.dispatchEvent(new Event("input", { bubbles: true }));
  }, text);
}

async function opened(open: Open, looks: Looks = {}, link = ""): Promise<Tab> {
  const tab = await ready(await open(page("live").path, looks, link));
  await until(
    tab,
    "a model that is ready",
    () => document.querySelector<HTMLElement>("[data-state]")?.dataset.state === "ready",
    null,
  );
  return tab;
}

/** The page with some of its text replaced. */
function spoiled(name: string, change: (html: string) => string): string {
  const path = join(folder, `${name}.html`);
  writeFileSync(path, change(readFileSync(page("live").path, "utf8")));
  return path;
}

export function live(open: Open, browser: string): void {
  it.skipIf(!has("live"))("a live page translates the reader's text, as the tool does", async () => {
    const tab = await opened(open);
    const [first, own] = [told("live-first"), told("live-own")];
    await answered(tab, [first.whole, first.whole]);
    await typed(tab, own.text);
    await answered(tab, [own.whole, own.whole]);
    await until(tab, "the page of the new text", (text) => document.title.includes(text), own.text);
    await go(tab, "text");
    const weights = await drawn(tab);
    expect(weights.weights.length, `${tab.where}: keys of the new text`).toBeGreaterThan(5);
    await go(tab, "lens");
    expect(await heading(tab), `${tab.where}: its lens`).not.toBe("");
    expect(tab.faults, tab.where).toEqual([]);
  });

  it.skipIf(!has("live"))("heads are left out, put back and undone, and a link shows the same", async () => {
    const tab = await opened(open);
    const first = told("live-first");
    await answered(tab, [first.whole, first.whole]);
    await tab.click(`[data-head="${changedHead}"]`);
    await tab.click('[data-do="layer"]');
    const now = await answered(tab, [first.whole, first.changed]);
    expect(now.differs, tab.where).toMatch(/^log p of the translation: .*, with your changes .* less$/);
    const sum = now.scores.reduce((all, one) => all + one, 0);
    expect(sum, `${tab.where}: what the words lose, as the tool says`).toBeCloseTo(first.log_probability_lost, 3);
    const link = await fragment(tab);
    await tab.click('[data-do="undo"]');
    await answered(tab, [first.whole, first.whole]);
    const again = await opened(open, {}, link);
    await answered(again, [first.whole, first.changed]);
    await again.click('[data-do="reset"]');
    await answered(again, [first.whole, first.whole]);
    expect([...tab.faults, ...again.faults], tab.where).toEqual([]);
  });

  it.skipIf(!has("live"))("each head is left out, and a guess is told its place", async () => {
    const tab = await opened(open);
    const first = told("live-first");
    await answered(tab, [first.whole, first.whole]);
    await tab.click(`[data-head="${changedHead}"]`);
    await tab.click('[data-do="guess"]');
    await tab.click('[data-do="each"]');
    const result = await until(
      tab,
      "all heads left out",
      () => {
        const text = document.querySelector<HTMLElement>(".left-out")?.innerText ?? "";
        return /Most (is lost|changes) /.test(text) ? text : null;
      },
      null,
    );
    expect(result, tab.where).toMatch(/^(You guessed right\. )?Most is lost without .*: /);
    const losses = await tab.evaluate(
      () =>
        [...document.querySelectorAll<HTMLElement>(".living [data-head][data-change]")].map((one) => [
          one.dataset.head ?? "",
          -Number(one.dataset.change),
        ]),
      null,
    );
    expect(losses.length, `${tab.where}: heads`).toBe(24);
    const found = new Map(losses as [string, number][]);
    for (const [head, lost] of Object.entries(first.lost_without))
      expect(found.get(head), `${tab.where}: ${head}`).toBeCloseTo(lost, 3);
    expect(tab.faults, tab.where).toEqual([]);
  });

  const wrong: { what: string; change: (html: string) => string; says: RegExp }[] = [
    {
      what: "a part is missing",
      change: (html) => html.replace(/<script class="live"[^>]*>[^<]*<\/script>\n(?=<script>)/, ""),
      says: /cannot be opened: .*(cut or changed)/,
    },
    {
      what: "a byte is another",
      change: (html) =>
        html.replace(/(<script class="live"[^>]*>[^<]{5000})(.)/, (_, a, b) => a + (b === "A" ? "B" : "A")),
      says: /cannot be opened: .*cut or changed/,
    },
    {
      what: "the library is no library",
      change: (html) => html.replace(/(<script class="live"[^>]*>)[^<]*/, "$1eJzLSM3JyQcABiwCFQ=="),
      says: /cannot be opened: .*cut or changed/,
    },
  ];
  it.skipIf(!has("live")).each(wrong)("a page in which $what shows what was recorded, and says so", async (one) => {
    const tab = await open(spoiled(`${browser}-${one.what.replace(/\W+/g, "-")}`, one.change));
    await ready(tab);
    const status = await until(
      tab,
      "a line that says why there is no model",
      () => {
        const element = document.querySelector<HTMLElement>("[data-state]");
        return element?.dataset.state === "failed" ? element.innerText : null;
      },
      null,
    );
    expect(status, tab.where).toMatch(one.says);
    await go(tab, "text");
    expect((await drawn(tab)).weights.length, `${tab.where}: the recorded weights`).toBeGreaterThan(3);
  });
}
