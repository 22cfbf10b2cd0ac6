// Debian's Firefox ESR by puppeteer-core over WebDriver BiDi, which cannot emulate dark mode and reduced motion: a
// process with the preferences of each.
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import puppeteer, { type Browser as Program, type KeyInput, type Page } from "puppeteer-core";
import { address, call, described, first_of, note, patience, stays, tell_refusals, wide } from "./driver";
import type { Browser, Download, Kind, Looks, Tab } from "./driver";

const pause = (milliseconds: number): Promise<void> => new Promise((done) => setTimeout(done, milliseconds));

/** The bytes of a file; none while Firefox replaces the empty file that it made by the one that it saved. */
function contents(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return Buffer.alloc(0);
    throw error;
  }
}

class FirefoxTab implements Tab {
  readonly faults: string[] = [];

  constructor(
    private readonly page: Page,
    readonly where: string,
    own: string,
    private readonly saved: string,
  ) {
    page.on("console", (message) => {
      if (message.type() === "error") note(this.faults, `console: ${message.text()}`);
    });
    page.on("pageerror", (error) =>
      note(this.faults, `exception: ${error instanceof Error ? error.message : String(error)}`),
    );
    page.on("request", (request) => {
      if (!stays(request.url(), own)) note(this.faults, `request: ${request.url()}`);
    });
  }

  async evaluate<Given, Result>(script: (given: Given) => Result | Promise<Result>, given: Given): Promise<Result> {
    return (await this.page.evaluate(call(script, given))) as Result;
  }
  async run(script: string): Promise<void> {
    await this.page.evaluate(`${script}; null`);
  }
  async press(key: string): Promise<void> {
    const keys = key.split("+") as KeyInput[];
    const last = keys.pop() ?? "Enter";
    for (const modifier of keys) await this.page.keyboard.down(modifier);
    await this.page.keyboard.press(last);
    for (const modifier of keys.reverse()) await this.page.keyboard.up(modifier);
  }
  async click(selector: string): Promise<void> {
    await this.page.locator(selector).setTimeout(patience).click();
  }
  async point(selector: string): Promise<void> {
    await this.page.locator(selector).setTimeout(patience).hover();
  }
  async download(act: () => Promise<void>): Promise<Download> {
    const before = new Set(readdirSync(this.saved));
    await act();
    for (const begun = Date.now(); Date.now() - begun < patience; await pause(50)) {
      const files = readdirSync(this.saved);
      const name = files.find((file) => !before.has(file) && !file.endsWith(".part"));
      if (!name || files.some((file) => file.endsWith(".part"))) continue;
      const bytes = contents(join(this.saved, name));
      if (bytes.length === 0) continue; // Firefox makes the file before it has its bytes
      rmSync(join(this.saved, name));
      return { name, bytes };
    }
    throw new Error(`${this.where}: no file was saved within ${patience / 1000} s`);
  }
  clipboard(): Promise<string> {
    return this.evaluate(() => navigator.clipboard.readText(), null);
  }
  async screenshot(file: string, whole: boolean): Promise<void> {
    await this.page.screenshot({ path: file as `${string}.png`, fullPage: whole });
  }
  async pdf(): Promise<Buffer> {
    return Buffer.from(await this.page.pdf({ format: "a4" }));
  }
  async as_printed(): Promise<boolean> {
    return false;
  }
  close(): Promise<void> {
    return this.page.close();
  }
}

class Firefox implements Browser {
  readonly name = "Firefox";
  private readonly programs = new Map<string, Promise<Program>>();
  private readonly saved = mkdtempSync(join(tmpdir(), "viewer-saved-"));

  constructor(private readonly path: string) {}

  private program(looks: Looks): Promise<Program> {
    const key = `${looks.dark ?? false} ${looks.still ?? false}`;
    let program = this.programs.get(key);
    if (!program) {
      program = puppeteer.launch({
        browser: "firefox",
        executablePath: this.path,
        headless: true,
        extraPrefsFirefox: {
          "layout.css.prefers-color-scheme.content-override": looks.dark ? 0 : 1,
          "ui.prefersReducedMotion": looks.still ? 1 : 0,
          "browser.download.folderList": 2,
          "browser.download.dir": this.saved,
          "browser.download.alwaysOpenPanel": false,
          "dom.events.testing.asyncClipboard": true,
        },
      });
      this.programs.set(key, program);
    }
    return program;
  }

  async open(path: string, looks: Looks = {}, fragment?: string): Promise<Tab> {
    const page = await (await this.program(looks)).newPage();
    const tab = new FirefoxTab(page, described(this.name, path, looks), address(path, undefined), this.saved);
    await page.setViewport({ width: looks.width ?? wide.width, height: looks.height ?? wide.height });
    await page.evaluateOnNewDocument(tell_refusals);
    await page.goto(address(path, fragment));
    return tab;
  }
  async close(): Promise<void> {
    for (const program of this.programs.values()) await (await program).close();
    rmSync(this.saved, { recursive: true, force: true });
  }
}

const program = first_of(["/usr/bin/firefox-esr"]);

export const kind: Kind = { name: "Firefox", program, launch: async () => new Firefox(program ?? "") };
