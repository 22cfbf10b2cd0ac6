// npx vite-node browser/screenshots.ts PAGE.html PICTURE.png [VIEW]: the first screen of a page, as the README shows
// it, or a view.
import { kind } from "./chromium";
import { go, ready, settled } from "./reader";

const [page, picture, view] = process.argv.slice(2);
if (!page || !picture) throw new Error("usage: screenshots.ts PAGE.html PICTURE.png [VIEW]");
if (!kind.program) throw new Error("Chromium is not installed; scripts/packages viewer installs it");
const browser = await kind.launch();
const tab = await ready(await browser.open(page, { width: 1280, height: view ? 1080 : 850 }));
if (view) await go(tab, view);
await settled(tab);
await tab.screenshot(picture, false);
await browser.close();
