// The made-up pages by name; test/write.mjs writes them where browsers find them.
import type { Page, Token } from "../src/page";
import { attentionsOf, Numbers, packed, pageOf, runOf, textOf, tokensOf, walkOf } from "./synthetic";

export interface Made {
  page: Page;
  data: string;
}

const made = (numbers: Numbers, page: Page): Made => ({ page, data: packed(page, numbers) });
const sentence = "[CLS] the small dog sees the un|happ|y cat . [SEP]";

export function encoder(): Made {
  const numbers = new Numbers();
  const attentions = attentionsOf("encoder", 3, 6);
  const texts = [tokensOf(sentence, ["[CLS]", "[SEP]"]), tokensOf("[CLS] a man sleeps . [SEP]", ["[CLS]", "[SEP]"])];
  const run = runOf(
    "encoder",
    attentions,
    texts.map((one) => textOf(numbers, attentions, one, null)),
    {
      walk: walkOf(numbers, "encoder.0.self_attention", 12, 24, 6),
    },
  );
  return made(numbers, pageOf([run]));
}

export function causal(): Made {
  const numbers = new Numbers();
  const attentions = attentionsOf("decoder", 4, 9, 3, true);
  const run = runOf("causal", attentions, [
    textOf(numbers, attentions, tokensOf("The small dog sees the un|happ|y cat ."), null, "products"),
  ]);
  return made(numbers, pageOf([run]));
}

export function translator(): Made {
  const numbers = new Numbers();
  const attentions = [
    ...attentionsOf("encoder", 2, 4),
    ...attentionsOf("decoder", 2, 4, 4, true),
    ...attentionsOf("cross", 2, 4),
  ];
  const source = tokensOf("the small dog sees a cat . </s>", ["</s>"]);
  const target = tokensOf("<s> der kleine Hund sieht eine Katze .", ["<s>"]);
  const run = runOf("translator", attentions, [textOf(numbers, attentions, source, target)]);
  const page = pageOf([run], "one", "decoder.1.cross_attention.3");
  page.opens.words = "translation of a word, 91 %";
  return made(numbers, page);
}

export function several(mode: "compare" | "time", count: number): Made {
  const numbers = new Numbers();
  const attentions = attentionsOf("encoder", 2, 6);
  const runs = Array.from({ length: count }, (_, r) =>
    runOf(
      "encoder",
      attentions,
      [textOf(numbers, attentions, tokensOf(sentence, ["[CLS]", "[SEP]"]), null, "roots", r)],
      {
        name: mode === "time" ? `update ${100 * (r + 1)}` : `model ${"AB"[r] ?? r}`,
        update: mode === "time" ? 100 * (r + 1) : null,
      },
    ),
  );
  for (const [r, run] of runs.entries()) {
    run.evidence.stats?.heads.forEach((head, h) => {
      head.entropy_share = 1 - (r / count) * ((h % 4) / 4);
      head.at_offset["-1"] = (r / count) * ((h % 3) / 3);
    });
  }
  return made(numbers, pageOf(runs, mode));
}

export const hostileTokens = [
  "<script>window.hacked = 1</script>",
  "<img src=x onerror=window.hacked=1>",
  "\"'`",
  "</script>",
  "\u202Eright to left\u202C",
  "\u2067isolate",
  "שלום",
  "👩‍👩‍👧‍👦",
  "🏳️‍🌈",
  "\u0000",
  "\u0007bell",
  "a\u0301\u0302",
  "x".repeat(10000),
  "&amp;",
  "$\x7b1}",
  "{data}",
  "\uFEFF",
  "\t",
  "\n",
  "",
];

export function hostile(): Made {
  const numbers = new Numbers();
  const attentions = attentionsOf("encoder", 2, 3);
  let text = "";
  const tokens: Token[] = hostileTokens.map((label, word) => {
    const begin = [...text].length;
    text += label;
    const end = [...text].length;
    text += " ";
    return { label, token: label, begin, end, word, special: false };
  });
  const run = runOf("encoder", attentions, [textOf(numbers, attentions, { text, tokens }, null)], {
    name: "<b>model</b>\u202E",
  });
  const page = pageOf([run]);
  page.made.command = "multihead view '<script>alert(1)</script>'";
  page.opens.words = "<i>next</i> token, 91 %";
  return made(numbers, page);
}

/** Heads whose weights may be below 0. */
export function belowZero(): Made {
  const numbers = new Numbers();
  const attentions = attentionsOf("encoder", 2, 4);
  return made(
    numbers,
    pageOf([
      runOf("encoder", attentions, [
        textOf(numbers, attentions, tokensOf(sentence, ["[CLS]", "[SEP]"]), null, "halves"),
      ]),
    ]),
  );
}

/** 512 tokens x 72 heads, as products. */
export function long(): Made {
  const numbers = new Numbers();
  const attentions = attentionsOf("encoder", 6, 12).map((of) => ({ ...of, d_key: 32 }));
  const line = Array.from(
    { length: 510 },
    (_, i) => ["the", "dog", "sees", "a", "small", "cat", "and", "sleeps", "."][i % 9],
  ).join(" ");
  const run = runOf("encoder", attentions, [
    textOf(numbers, attentions, tokensOf(`[CLS] ${line} [SEP]`, ["[CLS]", "[SEP]"]), null, "products"),
  ]);
  return made(numbers, pageOf([run]));
}

export const pages: { [name: string]: () => Made } = {
  encoder,
  causal,
  translator,
  hostile,
  belowZero,
  long,
  compare: () => several("compare", 2),
  time: () => several("time", 5),
};
