// What is seen before anything is clicked: the head in words, the tool's own weights; and that the page keeps to
// itself.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { all, has, page, type Made } from "./made";
import { choose, drawn, heading, ready, seen, settled } from "./reader";
import type { Open, Tab } from "./driver";

const within = 0.004; // the page's stated error

function compare(tab: Tab, made: Made, shown: { head: string; query: number; weights: number[] }): void {
  const right = made.weights?.[shown.head]?.[shown.query];
  const place = `${tab.where}: query ${shown.query} of ${shown.head}`;
  expect(right, `${place} is none that the tool knows`).toBeDefined();
  // A causal query sees a part of the keys; the page may leave the rest out.
  (right ?? []).forEach((weight, key) => {
    expect(
      Math.abs((shown.weights[key] ?? 0) - weight),
      `${place}, key ${key}: shown ${shown.weights[key]}, the tool's ${weight}`,
    ).toBeLessThan(within);
  });
}

const hash = (text: string): string => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;

/** How a heading begins that names `head`: "Encoder 0, head 2: …", "Cross-attention 1, head 3: …". */
function in_words(head: string): RegExp {
  const [, stack, layer, kind, number] = /^(\w+)\.(\d+)\.(\w+)_attention\.(\d+)$/.exec(head) ?? [];
  const place = kind === "cross" ? "cross-attention" : stack;
  return new RegExp(`^${place} ${layer}, head ${number}: .{3,}`, "i");
}

export function first_screen(open: Open): void {
  const policies =
    "the policy of $name allows its own script and style by their hashes, a live one WebAssembly and its worker";
  it.each(all)(policies, ({ name, path }) => {
    const live = name === "live";
    const html = readFileSync(path, "utf8");
    const policy = /<meta http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(html)?.[1] ?? "";
    const directive = (name: string): string =>
      policy
        .split(";")
        .map((part) => part.trim())
        .find((part) => part.startsWith(name)) ?? "";
    const script = /<script>([\s\S]*?)<\/script>/.exec(html)?.[1] ?? "";
    const style = /<style>([\s\S]*?)<\/style>/.exec(html)?.[1] ?? "";
    expect(directive("default-src"), path).toBe("default-src 'none'");
    expect(directive("script-src"), path).toBe(`script-src ${hash(script)}${live ? " 'wasm-unsafe-eval'" : ""}`);
    expect(directive("worker-src"), path).toBe(live ? "worker-src blob:" : "");
    expect(directive("style-src"), path).toBe(`style-src ${hash(style)}`);
    expect(policy.replace("'wasm-unsafe-eval'", ""), path).not.toMatch(/unsafe|https?:|\*|connect-src (?!'none')/);
  });

  const recorded = all.filter(({ name }) => name !== "live");
  it.each(recorded)("the first screen of $name names a head, and its weights are the tool's", async (made) => {
    const tab = await ready(await open(made.path));
    const shown = await drawn(tab);
    expect(await heading(tab), `${tab.where}: the heading names the head whose weights are drawn`).toMatch(
      in_words(shown.head),
    );
    if (made.weights) compare(tab, made, shown);
    const text = await seen(tab);
    expect(text, `${tab.where}: the command that made the page`).toMatch(/multihead view/);
    expect(text, `${tab.where}: the hash of the weights`).toMatch(/\b[0-9a-f]{8,64}\b/);
    expect(text, `${tab.where}: a word of caution`).toMatch(/attention is not yet an explanation/i);
    await settled(tab);
    expect(tab.faults, tab.where).toEqual([]);
  });

  it.each(all.filter((made) => made.weights))("$name shows the tool's weights of other heads, too", async (made) => {
    const tab = await ready(await open(made.path));
    const heads = Object.keys(made.weights ?? {});
    const some = heads.filter((_, i) => i % Math.ceil(heads.length / 12) === 0);
    for (const head of some) compare(tab, made, await choose(tab, head));
  });

  it.skipIf(!has("demo"))(
    "the first screen's words alone tell which head goes from an article to its noun",
    async () => {
      const made = page("demo");
      const tab = await ready(await open(made.path));
      const words = await heading(tab);
      const found = /^Encoder (\d+), head (\d+): article → noun, (\d+) ?%$/.exec(words);
      expect(found, `${tab.where}: the heading is "${words}"`).not.toBeNull();
      expect(Number(found?.[3]), `${tab.where}: ${words}`).toBeGreaterThan(80);
      // And it is true: "the small dog sees a cat .", where both articles look at their nouns.
      const rows = made.weights?.[`encoder.${found?.[1]}.self_attention.${found?.[2]}`] ?? [];
      const strongest = [0, 4].map((article) => rows[article]?.indexOf(Math.max(...(rows[article] ?? []))));
      expect(strongest, `${tab.where}: keys that the articles of the sentence look at`).toEqual([2, 5]);
      expect([0, 4], `${tab.where}: the word in focus is an article`).toContain((await drawn(tab)).query);
    },
  );

  it("refuses a script and a picture that are not its own", async () => {
    const tab = await ready(await open((all[0] as Made).path));
    const ran = await tab.evaluate(async () => {
      const script = document.createElement("script");
      script.textContent = "window.stranger = true";
      document.body.append(script);
      const picture = new Image();
      const refused = new Promise<boolean>((done) => {
        picture.onload = () => done(false);
        picture.onerror = () => done(true);
      });
      picture.src = "https://example.org/picture.png";
      return { script: "stranger" in window, picture: !(await refused) };
    }, null);
    expect(ran, tab.where).toEqual({ script: false, picture: false });
  });
}
