// Text that wants to be more than text, and data that are not a page's.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import type { Page } from "../src/page";
import { alter, spoil } from "./altered";
import { all, has, page } from "./made";
import { phone, type Open } from "./driver";
import { drawn, go, overflowing, ready, seen, settled, until, views } from "./reader";

const folder = mkdtempSync(join(tmpdir(), "viewer-hostile-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const labels: { what: string; label: string; seen: string }[] = [
  { what: "a script", label: "<script>window.stranger=1</script>", seen: "<script>window.stranger=1</script>" },
  { what: "a picture with a handler", label: '"><img src=x onerror="window.stranger=1">', seen: "onerror=" },
  { what: "quotes", label: "'\"`\\", seen: "'\"`\\" },
  { what: "entities", label: "&lt;b&gt; &amp;", seen: "&lt;b&gt; &amp;" },
  { what: "the end of a comment and of data", label: "--></script>]]>", seen: "--></script>]]>" },
  { what: "marks of direction", label: "\u202eabc\u2066def", seen: "abc" },
  { what: "right-to-left words", label: "שלום", seen: "שלום" },
  { what: "an emoji with joiners", label: "👩‍👩‍👧‍👦", seen: "👩" },
  { what: "NUL", label: "a\u0000b", seen: "a" },
  { what: "marks that combine", label: "z\u0351\u0367\u0352".repeat(30), seen: "z" },
  { what: "a line's end", label: "one\ntwo", seen: "one" },
  { what: "nothing", label: "", seen: "" },
  { what: "10,000 characters", label: "long".repeat(2500), seen: "longlong" },
];

// The demo's sentence has eight tokens: as many labels stand in it at once.
const groups = [
  { name: "markup", some: labels.slice(0, 6) },
  { name: "strange characters", some: labels.slice(6, 12) },
  { name: "10,000 characters", some: labels.slice(12) },
];

/** Labels take turns as the words of the text, and the first of them stands wherever else the page has words. */
function poison(labels: string[]): (page: Page) => void {
  return (data) => {
    const [first] = labels;
    for (const run of data.runs) {
      run.name = first ?? "";
      for (const { source, target, predicted } of run.texts) {
        for (const side of [source, target, predicted]) {
          if (!side) continue;
          side.text = "";
          side.tokens.forEach((token, i) => {
            token.label = labels[i % labels.length] ?? "";
            token.token = token.label;
            token.begin = [...side.text].length;
            side.text += token.label;
            token.end = [...side.text].length;
            side.text += " ";
          });
        }
      }
    }
    data.opens.words = `${first} → noun, 97 %`;
    data.made.command = `multihead view '${first}'`;
  };
}

export function hostile(open: Open, browser: string): void {
  it.runIf(has("demo")).each(groups)("$name as text", async ({ name, some }) => {
    const path = join(folder, `${browser}-${name.replace(/\W+/g, "-")}.html`);
    alter(page("demo").path, path, poison(some.map(({ label }) => label)));
    const tab = await ready(await open(path, { ...phone }));
    for (const view of await views(tab)) {
      await go(tab, view);
      const place = `${tab.where}, view ${view}`;
      const found = await tab.evaluate(
        () => ({
          ran: "stranger" in window,
          strangers: document.querySelectorAll("main img:not([alt]), main script").length,
        }),
        null,
      );
      expect(found.ran, `${place}: a script in a token ran`).toBe(false);
      expect(found.strangers, `${place}: elements that a token made`).toBe(0);
      expect(await overflowing(tab), `${place}: what scrolls sideways`).toEqual([]);
    }
    const text = await tab.evaluate(() => document.body.textContent ?? "", null);
    for (const { what, seen: part } of some) expect(text, `${tab.where}: ${what}`).toContain(part);
    expect(tab.faults, tab.where).toEqual([]);
  });

  it.runIf(has("hostile"))("what a command line can carry", async () => {
    const tab = await ready(await open(page("hostile").path));
    await drawn(tab);
    for (const view of await views(tab)) await go(tab, view);
    const text = await seen(tab);
    expect(text, tab.where).toContain("script");
    expect(await tab.evaluate(() => "stranger" in window, null), `${tab.where}: the text ran`).toBe(false);
    expect(tab.faults, tab.where).toEqual([]);
  });

  const spoiled: { what: string; make: (to: string) => void; says: RegExp }[] = [
    {
      what: "another schema",
      make: (to) =>
        alter(all[0]?.path ?? "", to, (data) => {
          data.schema = 999;
        }),
      says: /schema.*999|999.*schema/i,
    },
    {
      what: "a header without runs",
      make: (to) =>
        alter(all[0]?.path ?? "", to, (data) => {
          data.runs = [];
        }),
      says: /cannot be shown.*(run|model|nothing|no )/i,
    },
    {
      what: "numbers outside the data",
      make: (to) =>
        alter(all[0]?.path ?? "", to, (data) => {
          const maps = data.runs[0]?.texts[0]?.maps[0];
          const block = maps?.roots ?? maps?.products?.q;
          if (block) block.offset = 2 ** 40;
        }),
      says: /offset|bytes|outside|numbers/i,
    },
    {
      what: "data that are no data",
      make: (to) => spoil(all[0]?.path ?? "", to, "bm9uc2Vuc2U="),
      says: /data|read|damaged/i,
    },
    { what: "no data", make: (to) => spoil(all[0]?.path ?? "", to, ""), says: /data/i },
  ];
  it.each(spoiled)("a page with $what says so in one line", async ({ what, make, says }) => {
    const path = join(folder, `${browser}-${what.replace(/\W+/g, "-")}.html`);
    make(path);
    const tab = await open(path);
    await settled(tab);
    const text = await until(
      tab,
      `a line that matches ${says}`,
      () => {
        const shown = document.body.innerText.trim();
        return shown && !shown.startsWith("Opening") ? shown : null;
      },
      null,
    );
    expect(text, tab.where).toMatch(says);
    expect(text.split("\n").length, `${tab.where}: lines of "${text}"`).toBeLessThanOrEqual(2);
    // Firefox tells of a damaged stream even when the page has caught the error.
    expect(
      tab.faults.filter((fault) => !fault.includes("ReadableStream")),
      tab.where,
    ).toEqual([]);
  });
}
