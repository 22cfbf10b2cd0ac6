// A page that the tool made, with another header: what no command line can carry.
import { readFileSync, writeFileSync } from "node:fs";
import { deflateSync, inflateSync } from "node:zlib";
import type { Page } from "../src/page";

const element = /(<script id="data" type="text\/plain">)([^<]*)(<\/script>)/;

/**
 * Writes the page at `from` to `to`, after `change` of its header; the numbers stay. src/page.ts describes the bytes.
 */
export function alter(from: string, to: string, change: (page: Page) => void): void {
  const html = readFileSync(from, "utf8");
  const data = inflateSync(Buffer.from(element.exec(html)?.[2] ?? "", "base64"));
  const up = (bytes: number): number => Math.ceil(bytes / 8) * 8;
  const length = data.readUInt32LE(0);
  const page = JSON.parse(data.toString("utf8", 4, 4 + length)) as Page;
  change(page);
  const header = Buffer.from(JSON.stringify(page), "utf8");
  const front = Buffer.alloc(up(4 + header.length));
  front.writeUInt32LE(header.length, 0);
  header.copy(front, 4);
  replace(html, to, deflateSync(Buffer.concat([front, data.subarray(up(4 + length))])).toString("base64"));
}

/** Writes the page at `from` with other text where its data are. */
export function spoil(from: string, to: string, data: string): void {
  replace(readFileSync(from, "utf8"), to, data);
}

function replace(html: string, to: string, data: string): void {
  writeFileSync(
    to,
    html.replace(element, (_, before: string, __, after: string) => before + data + after),
  );
}
