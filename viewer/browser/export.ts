// Pictures of every view, and figures that can be copied.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { all, shots } from "./made";
import { go, own_views, ready } from "./reader";
import type { Open, Tab } from "./driver";

const button = (what: string): string => `button[data-do="${what}"]`;

async function there(tab: Tab, what: string): Promise<boolean> {
  return tab.evaluate(
    (selector) => (document.querySelector<HTMLElement>(selector)?.offsetParent ?? null) !== null,
    button(what),
  );
}

export function exports_of_views(open: Open, browser: string): void {
  it.each(all)("SVG, PNG and figures of each view of $name", async ({ name, path }) => {
    const tab = await ready(await open(path));
    let copied = 0;
    for (const view of await own_views(tab, name)) {
      await go(tab, view);
      const place = `${tab.where}, view ${view}`;
      expect(await there(tab, "svg"), `${place}: a button for SVG`).toBe(true);
      const svg = await tab.download(() => tab.click(button("svg")));
      expect(svg.name, place).toMatch(/\.svg$/);
      const shape = await tab.evaluate((text) => {
        const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
        return {
          name: root.nodeName,
          drawn: root.querySelectorAll("path, rect, text, image, line, circle").length,
          strange:
            [...root.querySelectorAll("script, foreignObject")].length + Number(/(href|src)="https?:/.test(text)),
        };
      }, svg.bytes.toString("utf8"));
      expect(shape.name, `${place}: the SVG is well-formed`).toBe("svg");
      // These may be a line that says why there is none.
      const few = ["attribution", "contributions", "lens"].includes(view) ? 2 : 3;
      expect(shape.drawn, `${place}: shapes in the SVG`).toBeGreaterThan(few);
      expect(shape.strange, `${place}: scripts, HTML and links in the SVG`).toBe(0);

      const png = await tab.download(() => tab.click(button("png")));
      expect(png.name, place).toMatch(/\.png$/);
      expect(png.bytes.subarray(1, 4).toString(), `${place}: the PNG's first bytes`).toBe("PNG");
      expect(png.bytes.readUInt32BE(16), `${place}: the PNG's width`).toBeGreaterThan(300);
      expect(png.bytes.length, `${place}: the PNG's bytes`).toBeGreaterThan(2000);
      writeFileSync(join(shots, `${name}-${view}-saved-${browser.toLowerCase()}.svg`), svg.bytes);
      writeFileSync(join(shots, `${name}-${view}-saved-${browser.toLowerCase()}.png`), png.bytes);

      if (!(await there(tab, "copy"))) continue;
      await tab.click(button("copy"));
      const lines = (await tab.clipboard())
        .trim()
        .split("\n")
        .map((line) => line.split("\t"));
      expect(lines.length, `${place}: copied lines`).toBeGreaterThan(1);
      expect(new Set(lines.map((cells) => cells.length)).size, `${place}: all copied lines have as many cells`).toBe(1);
      expect(lines[0]?.length, `${place}: copied columns`).toBeGreaterThan(1);
      ++copied;
    }
    if (name !== "live") expect(copied, `${tab.where}: views whose figures can be copied`).toBeGreaterThan(0);
    expect(tab.faults, tab.where).toEqual([]);
  });
}
