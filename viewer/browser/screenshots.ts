// npx vite-node browser/screenshots.ts PAGE.html PICTURE.png: the first screen of a page, as the README shows it.
import { kind } from "./chromium";
import { ready, settled } from "./reader";

const [page, picture] = process.argv.slice(2);
if (!page || !picture) throw new Error("usage: screenshots.ts PAGE.html PICTURE.png");
if (!kind.program) throw new Error("Chromium is not installed; scripts/packages viewer installs it");
const browser = await kind.launch();
const tab = await ready(await browser.open(page, { width: 1280, height: 850 }));
await settled(tab);
await tab.screenshot(picture, false);
await browser.close();
