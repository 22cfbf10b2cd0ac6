// npx vite-node browser/screenshots.ts PAGE.html PICTURE.png [VIEW [FRAGMENT]]: the first screen of a page, as the
// README shows it, or a view; of a live page when it has answered and left each head out.
import { kind } from "./chromium";
import { go, ready, settled, until } from "./reader";

const [page, picture, view, fragment] = process.argv.slice(2);
if (!page || !picture) throw new Error("usage: screenshots.ts PAGE.html PICTURE.png [VIEW [FRAGMENT]]");
if (!kind.program) throw new Error("Chromium is not installed; scripts/packages viewer installs it");
const browser = await kind.launch();
const tab = await ready(await browser.open(page, { width: 1280, height: view ? 1080 : 850 }, fragment));
if (view) await go(tab, view);
if (view === "live") {
  const lanes = () => [...document.querySelectorAll<HTMLElement>(".lane .says")].every((lane) => lane.innerText !== "");
  await until(tab, "an answer", () => document.querySelectorAll(".lane .says").length === 2, null);
  await until(tab, "both lanes", lanes, null);
  await tab.click('[data-do="each"]');
  const done = () => /Most (is lost|changes) /.test(document.querySelector(".left-out")?.textContent ?? "");
  await until(tab, "all heads left out", done, null);
}
await settled(tab);
await tab.screenshot(picture, false);
await browser.close();
