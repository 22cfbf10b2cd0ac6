// What heads and tokens count for: in the finder, in the head's view, over the text.
import { expect, it } from "vitest";
import type { Open } from "./driver";
import { has, page } from "./made";
import { go, heading, ready, seen, settled, until } from "./reader";

interface Shown {
  method: string;
  scores: { score: number; kept: boolean; background: string }[];
}

/** Each method with its tokens' scores and colours. */
function shown(): Shown[] {
  return [...document.querySelectorAll<HTMLElement>("[data-method]")].map((section) => ({
    method: section.dataset.method ?? "",
    scores: [...section.querySelectorAll<HTMLElement>("[data-score]")].map((token) => ({
      score: Number(token.dataset.score),
      kept: token.classList.contains("kept"),
      background: getComputedStyle(token).backgroundColor,
    })),
  }));
}

export function importance(open: Open): void {
  it.skipIf(!has("demo"))(
    "tokens are coloured by each method, and what is explained stands in the heading",
    async () => {
      const tab = await ready(await open(page("demo").path));
      await go(tab, "attribution");
      expect(await heading(tab), tab.where).toMatch(/^Attribution: log-probability of “.+”, −?[\d.]+(e[−-]\d+)? nats$/);
      const methods = await tab.evaluate(shown, null);
      expect(
        methods.map((one) => one.method),
        tab.where,
      ).toEqual([
        "attention",
        "norm-weighted",
        "rollout",
        "relevance",
        "flow",
        "gradient-x-input",
        "integrated-gradients",
        "value-zeroing",
      ]);
      for (const { method, scores } of methods) {
        const asked = scores.filter((token) => !token.kept);
        expect(asked.length, `${tab.where}: tokens of ${method}`).toBeGreaterThan(5);
        expect(
          new Set(asked.map((token) => token.background)).size,
          `${tab.where}: colours of ${method}`,
        ).toBeGreaterThan(2);
        for (const token of scores.filter((one) => one.kept))
          expect(token.background, `${tab.where}: ${method}, a kept token`).toBe("rgba(0, 0, 0, 0)");
      }
      expect(tab.faults, tab.where).toEqual([]);
    },
  );

  it.skipIf(!has("hostile"))("an encoder's single text has no view of attributions", async () => {
    const tab = await ready(await open(page("hostile").path));
    const views = await tab.evaluate(
      () => [...document.querySelectorAll<HTMLElement>("nav button")].map((one) => one.dataset.view),
      null,
    );
    expect(views, tab.where).toContain("text");
    expect(views, tab.where).not.toContain("attribution");
  });

  it.skipIf(!has("demo"))(
    "the finder puts the heads that matter first, and a head's view says what is lost without it",
    async () => {
      const tab = await ready(await open(page("demo").path, {}, "by=ablation"));
      const values = await until(
        tab,
        "heads ordered by what is lost without them",
        () => {
          const band = document.querySelector(".band");
          const all = [...(band?.querySelectorAll(".value") ?? [])].map((value) =>
            Number((value.textContent ?? "").split(" ")[1]?.replaceAll("−", "-")),
          );
          return all.length > 3 && all.every(Number.isFinite) ? all : null;
        },
        null,
      );
      expect(values, `${tab.where}: largest first`).toEqual([...values].sort((a, b) => b - a));
      await go(tab, "head");
      await settled(tab);
      const change = /Without it the log-probability of the translation (falls|rises) by [\d.e−-]+ nats/;
      const place = /nats on this page's text: rank \d+ of 24\./;
      const said = (await seen(tab)).split("\n").filter((line) => change.test(line) && place.test(line));
      expect(said, `${tab.where}: a line with the head's loss and rank`).toHaveLength(1);
      expect(tab.faults, tab.where).toEqual([]);
    },
  );
}
