// Checks that what came out of a page is a Page: every field that the views read, so that a broken page is one line of
// text.
import { readAttribution } from "./attributed";
import { readContributions } from "./contributed";
import { readGiven } from "./given";
import { readLens } from "./lensed";
import { type Block, type Page, SCHEMA } from "./page";
import { BadPage, count, type Fields, fields, flag, list, oneOf, orAbsent, record, text } from "./reader";
import { readEvidence } from "./reports";

const readBlock = record<Block>({ offset: count, bytes: count });

/** A Block of `bytes` bytes that lies inside the numbers. */
function block(value: unknown, bytes: number, total: number, align: number, where: string): void {
  const { offset, bytes: found } = readBlock(value, where);
  if (found !== bytes) throw new BadPage(`${where} has ${found} bytes instead of ${bytes}.`);
  if (offset % align !== 0) throw new BadPage(`${where} begins at ${offset}, which is no multiple of ${align}.`);
  if (offset + found > total) throw new BadPage(`${where} ends behind the ${total} bytes of numbers.`);
}

function tokens(value: unknown, where: string): number {
  const it = fields(value, where);
  text(it.text, `${where}.text`);
  const all = list(it.tokens, `${where}.tokens`);
  all.forEach((entry, i) => {
    const token = fields(entry, `${where}.tokens[${i}]`);
    text(token.label, `${where}.tokens[${i}].label`);
    text(token.token, `${where}.tokens[${i}].token`);
    count(token.begin, `${where}.tokens[${i}].begin`);
    count(token.end, `${where}.tokens[${i}].end`);
    count(token.word, `${where}.tokens[${i}].word`, -1);
    flag(token.special, `${where}.tokens[${i}].special`);
  });
  return all.length;
}

function attention(value: unknown, where: string): void {
  const it = fields(value, where);
  text(it.name, `${where}.name`);
  oneOf("encoder", "decoder", "cross")(it.kind, `${where}.kind`);
  count(it.layer, `${where}.layer`);
  count(it.heads, `${where}.heads`, 1);
  count(it.key_heads, `${where}.key_heads`, 1);
  count(it.d_key, `${where}.d_key`, 1);
  flag(it.causal, `${where}.causal`);
}

function maps(value: unknown, of: Fields, sizes: [number, number], total: number, where: string): void {
  const it = fields(value, where);
  const queries = count(it.queries, `${where}.queries`);
  const keys = count(it.keys, `${where}.keys`);
  if (queries !== sizes[0] || keys !== sizes[1]) {
    throw new BadPage(`${where} has ${queries} x ${keys} weights for ${sizes[0]} x ${sizes[1]} tokens.`);
  }
  const heads = of.heads as number;
  const keyHeads = of.key_heads as number;
  const d = of.d_key as number;
  it.halves ??= null;
  if (it.roots === null && it.halves === null && it.products === null)
    throw new BadPage(`${where} has neither weights nor products.`);
  if (it.halves !== null) block(it.halves, 2 * heads * queries * keys, total, 2, `${where}.halves`);
  if (it.roots !== null) block(it.roots, heads * queries * keys, total, 1, `${where}.roots`);
  if (it.products !== null) {
    const products = fields(it.products, `${where}.products`);
    block(products.q, 2 * heads * queries * d, total, 2, `${where}.products.q`);
    block(products.k, 2 * keyHeads * keys * d, total, 2, `${where}.products.k`);
    if (typeof products.scale !== "number") throw new BadPage(`${where}.products.scale is not a number.`);
    products.soft_cap ??= null;
    if (products.soft_cap !== null && typeof products.soft_cap !== "number")
      throw new BadPage(`${where}.products.soft_cap is not a number.`);
    count(products.window, `${where}.products.window`);
    if (products.bias !== null)
      block(products.bias, 4 * heads * (queries + keys - 1), total, 4, `${where}.products.bias`);
  }
  if (it.value_lengths !== null) block(it.value_lengths, 4 * heads * keys, total, 4, `${where}.value_lengths`);
}

function walk(value: unknown, total: number, where: string): void {
  const it = fields(value, where);
  text(it.attention, `${where}.attention`);
  list(it.steps, `${where}.steps`).forEach((entry, i) => {
    const at = `${where}.steps[${i}]`;
    const step = fields(entry, at);
    text(step.name, `${at}.name`);
    text(step.formula, `${at}.formula`);
    list(step.heads, `${at}.heads`).forEach((head) => count(head, `${at}.heads`));
    const cells = count(step.rows, `${at}.rows`) * count(step.columns, `${at}.columns`);
    oneOf("numbers", "queries", "keys")(step.row_axis, `${at}.row_axis`);
    oneOf("numbers", "queries", "keys")(step.column_axis, `${at}.column_axis`);
    block(step.numbers, 4 * cells, total, 4, `${at}.numbers`);
  });
}

function run(value: unknown, total: number, where: string): void {
  const it = fields(value, where);
  text(it.name, `${where}.name`);
  text(it.hash, `${where}.hash`);
  if (it.update !== null && typeof it.update !== "number") throw new BadPage(`${where}.update is not a number.`);
  oneOf("encoder", "causal", "translator")(it.family, `${where}.family`);
  const attentions = list(it.attentions, `${where}.attentions`);
  if (attentions.length === 0) throw new BadPage(`${where} has no attention to show.`);
  attentions.forEach((entry, i) => attention(entry, `${where}.attentions[${i}]`));
  const texts = list(it.texts, `${where}.texts`);
  if (texts.length === 0) throw new BadPage(`${where} has no text to show.`);
  texts.forEach((entry, t) => {
    const at = `${where}.texts[${t}]`;
    const one = fields(entry, at);
    const source = tokens(one.source, `${at}.source`);
    const target = one.target === null ? 0 : tokens(one.target, `${at}.target`);
    one.predicted ??= null;
    one.attribution = orAbsent(readAttribution)(one.attribution, `${at}.attribution`);
    one.contributions = orAbsent(readContributions)(one.contributions, `${at}.contributions`);
    one.lens = orAbsent(readLens)(one.lens, `${at}.lens`);
    if (one.predicted !== null && tokens(one.predicted, `${at}.predicted`) !== target)
      throw new BadPage(`${at}.predicted has not as many tokens as target.`);
    const all = list(one.maps, `${at}.maps`);
    if (all.length !== attentions.length)
      throw new BadPage(`${at} has ${all.length} maps for ${attentions.length} attentions.`);
    all.forEach((entryOfMaps, i) => {
      const of = attentions[i] as Fields;
      const decoder = of.kind === "cross" || (of.kind === "decoder" && one.target !== null);
      const sizes: [number, number] = [decoder ? target : source, of.kind !== "cross" && decoder ? target : source];
      maps(entryOfMaps, of, sizes, total, `${at}.maps[${i}]`);
    });
  });
  it.evidence = readEvidence(it.evidence, `${where}.evidence`);
  Object.assign(it, readGiven(it, where));
  if (it.walk !== null) walk(it.walk, total, `${where}.walk`);
}

/** The header as a Page, which is not live. `total` is the length of its section of numbers. */
export function checkPage(value: unknown, total: number): Page {
  const it = fields(value, "The header");
  if (it.schema !== SCHEMA) {
    throw new BadPage(
      `The data has schema ${JSON.stringify(it.schema) ?? "none"}, and this page reads schema ${SCHEMA}.`,
    );
  }
  const made = fields(it.made, "made");
  text(made.version, "made.version");
  text(made.command, "made.command");
  oneOf("one", "compare", "time")(it.mode, "mode");
  const runs = list(it.runs, "runs");
  if (runs.length === 0) throw new BadPage("There is no model to show.");
  runs.forEach((entry, i) => run(entry, total, `runs[${i}]`));
  const opens = fields(it.opens, "opens");
  count(opens.run, "opens.run");
  count(opens.text, "opens.text");
  text(opens.head, "opens.head");
  count(opens.query, "opens.query");
  text(opens.words, "opens.words");
  oneOf("relation", "alignment", "role", "given")(opens.by, "opens.by");
  it.live = false;
  return value as Page;
}
