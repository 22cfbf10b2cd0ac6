// Debian's Chromium by playwright-core.
import { readFileSync } from "node:fs";
import { chromium, type Browser as Program, type Page } from "playwright-core";
import { address, call, described, first_of, note, patience, stays, tell_refusals, wide } from "./driver";
import type { Browser, Kind, Looks, Tab } from "./driver";

class ChromiumTab implements Tab {
  readonly faults: string[] = [];

  constructor(
    private readonly page: Page,
    readonly where: string,
    own: string,
  ) {
    page.on("console", (message) => {
      if (message.type() === "error") note(this.faults, `console: ${message.text()}`);
    });
    page.on("pageerror", (error) => note(this.faults, `exception: ${error.message}`));
    page.on("request", (request) => {
      if (!stays(request.url(), own)) note(this.faults, `request: ${request.url()}`);
    });
  }

  evaluate<Given, Result>(script: (given: Given) => Result | Promise<Result>, given: Given): Promise<Result> {
    return this.page.evaluate<Result>(call(script, given));
  }
  async run(script: string): Promise<void> {
    await this.page.evaluate(script);
  }
  press(key: string): Promise<void> {
    return this.page.keyboard.press(key);
  }
  click(selector: string): Promise<void> {
    return this.page.click(selector, { timeout: patience });
  }
  point(selector: string): Promise<void> {
    return this.page.hover(selector, { timeout: patience });
  }
  async download(act: () => Promise<void>): Promise<{ name: string; bytes: Buffer }> {
    const [saved] = await Promise.all([this.page.waitForEvent("download", { timeout: patience }), act()]);
    return { name: saved.suggestedFilename(), bytes: readFileSync(await saved.path()) };
  }
  clipboard(): Promise<string> {
    return this.evaluate(() => navigator.clipboard.readText(), null);
  }
  async screenshot(file: string, whole: boolean): Promise<void> {
    await this.page.screenshot({ path: file, fullPage: whole });
  }
  pdf(): Promise<Buffer> {
    return this.page.pdf({ format: "A4" });
  }
  async as_printed(on: boolean): Promise<boolean> {
    await this.page.emulateMedia({ media: on ? "print" : "screen" });
    await this.evaluate(
      (event) => {
        window.dispatchEvent(new Event(event));
      },
      on ? "beforeprint" : "afterprint",
    );
    return true;
  }
  close(): Promise<void> {
    return this.page.context().close();
  }
}

class Chromium implements Browser {
  readonly name = "Chromium";

  constructor(private readonly program: Program) {}

  async open(path: string, looks: Looks = {}, fragment?: string): Promise<Tab> {
    const context = await this.program.newContext({
      colorScheme: looks.dark ? "dark" : "light",
      reducedMotion: looks.still ? "reduce" : "no-preference",
      viewport: { width: looks.width ?? wide.width, height: looks.height ?? wide.height },
      permissions: ["clipboard-read", "clipboard-write"],
    });
    const page = await context.newPage();
    const tab = new ChromiumTab(page, described(this.name, path, looks), address(path, undefined));
    await page.addInitScript(tell_refusals);
    await page.goto(address(path, fragment));
    return tab;
  }
  close(): Promise<void> {
    return this.program.close();
  }
}

const program = first_of(["/usr/bin/chromium"]);

export const kind: Kind = {
  name: "Chromium",
  program,
  // No sandbox: containers, and root, cannot have one. The pages are our own.
  launch: async () => new Chromium(await chromium.launch({ executablePath: program ?? "", args: ["--no-sandbox"] })),
};
