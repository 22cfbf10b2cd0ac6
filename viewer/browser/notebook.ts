// Two pages in one notebook, each in a frame made of srcdoc, as multihead.view shows them from Python.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { has, page } from "./made";
import { until } from "./reader";
import type { Open, Tab } from "./driver";

const folder = mkdtempSync(join(tmpdir(), "viewer-notebook-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const escaped = (html: string): string => html.replace(/&/g, "&amp;").replace(/"/g, "&quot;");

/** The head whose weights each frame shows; null until both show one. */
function heads_seen(tab: Tab): Promise<string[]> {
  return until(
    tab,
    "weights drawn in both frames (data-weights)",
    () => {
      const frames = [...document.querySelectorAll("iframe")].map((frame) => frame.contentDocument);
      const drawn = frames.map((inside) => inside?.querySelector("[data-weights]")?.getAttribute("data-weights") ?? "");
      return drawn.length === 2 && drawn.every(Boolean)
        ? drawn.map((text) => (JSON.parse(text) as { head: string }).head)
        : null;
    },
    null,
  );
}

export function notebook(open: Open, browser: string): void {
  it.runIf(has("demo"))("two pages in one notebook do not know of each other", async () => {
    const path = join(folder, `${browser}.html`);
    const inside = escaped(readFileSync(page("demo").path, "utf8"));
    const frame = `<iframe srcdoc="${inside}" style="width: 100%; height: 720px"></iframe>`;
    writeFileSync(
      path,
      `<!doctype html><meta charset="utf-8"><title>notebook</title><h1>notebook</h1>${frame}${frame}`,
    );
    const tab = await open(path);
    const [before, other] = await heads_seen(tab);
    expect(other, tab.where).toBe(before);
    const chosen = await tab.evaluate((now) => {
      const inside = document.querySelector("iframe")?.contentDocument;
      const thumbnails = [...(inside?.querySelectorAll<HTMLElement>("[data-head]") ?? [])];
      const thumbnail = thumbnails.find((one) => one.dataset.head !== now);
      thumbnail?.click();
      return thumbnail?.dataset.head ?? "";
    }, before);
    await until(
      tab,
      `the first frame shows ${chosen}`,
      (head) => {
        const text = document
          .querySelector("iframe")
          ?.contentDocument?.querySelector("[data-weights]")
          ?.getAttribute("data-weights");
        return text?.includes(`"${head}"`) ?? false;
      },
      chosen,
    );
    expect(await heads_seen(tab), tab.where).toEqual([chosen, before]);
    expect(await tab.evaluate(() => location.hash, null), `${tab.where}: the notebook's own address`).toBe("");
    expect(tab.faults, tab.where).toEqual([]);
  });
}
