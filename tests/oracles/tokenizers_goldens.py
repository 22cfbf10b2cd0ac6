"""What Hugging Face tokenizers says about tests/goldens/text/*.json, and the files it makes itself.

  python -m venv v && v/bin/pip install tokenizers
  v/bin/python tests/oracles/tokenizers_goldens.py

learned.json and learned_lower.json are ours; make them anew with
  multihead tokenize --train small.txt --vocabulary-size 300 --output-tokenizer learned.json
  multihead tokenize --train small.txt --vocabulary-size 200 --lowercase --normalization nfc \\
      --output-tokenizer learned_lower.json
  multihead tokenize --train small.txt --vocabulary-size 120 --word-level --output-tokenizer learned_words.json
"""

import json
import pathlib

import tokenizers
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

DATA = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "text"

TEXTS = [
    "",
    " ",
    "\t",
    "The cat sits on the mat.",
    "Die grüne Brücke fließt über die Straße.",
    "GROẞ STRASSE ÄÖÜ ΑΣ Σ İstanbul DŽ",
    "  two  leading and trailing  ",
    "tab\tand\nnewline\r\nand\x0bvertical",
    "non\u00a0breaking\u2003em\u3000ideographic\u200bzero\u200dwidth",
    "e\u0301te\u0301 a\u0308 u\u0308ber A\u030angstrom \u1e9b\u0323 q\u0323\u0307 q\u0307\u0323",
    "\u0301lonely accent, \u0323\u0301 two",
    "ﬁne ﬂow ½ x² № ™ … ﷺ ㍿ Ⅷ ① ａｂｃ",
    "漢字かな交じり文 テスト ｶﾞｷﾞ 한국어 \u1112\u1161\u11ab",
    "emoji 😀👍🏽 👨‍👩‍👧‍👦 🇩🇪 x😀y",
    "नमस्ते दुनिया, שָׁלוֹם עולם, مرحبا",
    "don't we've I'm they'll he'd it's 'sam O'Neil's 'LL ''s",
    "prices: $3.50, 1,000 and 20% (approx.) -- a_b __x__ C++ a/b?!",
    "digits 123abc456 ４５ ٣٤ ⅓",
    "</s>", "a</s>b <pad> <unk>", "x </s> y", "<s>unclosed </ s> < /s>", "<mask>", "a  <mask>  b", "a<mask>b<mask>",
    "word sword words word", "_word word_", "WORD Word", "＜/s＞ fullwidth",
    "▁literal ▁▁ mark▁", "▁", "Ġ Ċ",
    "a\u0000b \u0007 \u007f \ufeffbom \ufffd",
    "The the THE", "   ", "a", " a", "a ", "xyz qqq 漢 zzz 漢漢",
    "x   y    z", "\n\n a \n", "...", "1987", "Ⓐ①🄰 a‿b a·b",
    "ǅ ǆ Ǆ ŉ ſ ﬀ", "Zürich" * 12,
    "the quick brown fox, who didn't jump over 13 lazy dogs, said: \"Großartig!\"",
]


def specials(*names):
    return [AddedToken(name, special=True, normalized=False) for name in names]


def small_lines():
    return (DATA / "small.txt").read_text(encoding="utf-8").splitlines()


def word_level():
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    t.train_from_iterator(small_lines(), trainers.WordLevelTrainer(
        vocab_size=150, special_tokens=specials("<unk>", "<s>", "</s>", "<pad>"), show_progress=False))
    t.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[("<s>", 1), ("</s>", 2)])
    return t


def byte_level():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=True)
    t.train_from_iterator(small_lines(), trainers.BpeTrainer(
        vocab_size=330, special_tokens=specials("</s>"), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    return t


def byte_level_prefix():
    t = byte_level()
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True, add_prefix_space=True),
        processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 0)])])
    t.add_tokens([AddedToken("word", single_word=True), AddedToken("Word", normalized=True)])
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, rstrip=False)])
    return t


def metaspace(scheme, split=True, **bpe):
    t = Tokenizer(models.BPE(unk_token="<unk>", **bpe))
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    t.decoder = decoders.Metaspace(prepend_scheme=scheme)
    t.train_from_iterator(small_lines(), trainers.BpeTrainer(
        vocab_size=180, special_tokens=specials("<unk>", "</s>", "<pad>"), show_progress=False))
    t.add_tokens([AddedToken("WORD", normalized=True),
                  AddedToken("<mask>", lstrip=True, rstrip=True, normalized=False)])
    return t


def end_of_word():
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation(), pre_tokenizers.Digits(individual_digits=True)])
    t.decoder = decoders.BPEDecoder()
    t.train_from_iterator(small_lines(), trainers.BpeTrainer(
        vocab_size=200, special_tokens=specials("<unk>"), end_of_word_suffix="</w>", show_progress=False))
    return t


def continuing_prefix():
    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    t.normalizer = normalizers.NFKD()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(" ", "merged_with_previous"), pre_tokenizers.Split(Regex(r"\s+"), "removed"),
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits()])
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(small_lines(), trainers.BpeTrainer(
        vocab_size=200, special_tokens=specials("<unk>"), continuing_subword_prefix="##", show_progress=False))
    return t


def byte_fallback():
    """Shaped like Llama's: bytes for what is unknown, spaces replaced by the normalizer, no pre-tokenizer."""
    base = metaspace("always")
    model = json.loads(base.to_str())["model"]
    vocab = {"<unk>": 0, "</s>": 1}
    for b in range(256):
        vocab[f"<0x{b:02X}>"] = len(vocab)
    for token in sorted(model["vocab"], key=model["vocab"].get):
        vocab.setdefault(token, len(vocab))
    t = Tokenizer(models.BPE(vocab=vocab, merges=[tuple(m) for m in model["merges"]], unk_token="<unk>",
                             fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([
        normalizers.Prepend("▁"), normalizers.Replace(" ", "▁"), normalizers.Replace(Regex(" {2,}"), " ")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
    t.add_special_tokens(specials("<unk>", "</s>"))
    return t


def describe(path):
    tokenizer = Tokenizer.from_file(str(path))
    texts = []
    for text in TEXTS:
        with_specials = tokenizer.encode(text)
        plain = tokenizer.encode(text, add_special_tokens=False)
        texts.append({
            "text": text, "ids": with_specials.ids, "tokens": with_specials.tokens, "offsets": with_specials.offsets,
            "plain_ids": plain.ids,
            "decoded": tokenizer.decode(with_specials.ids),
            "decoded_with_special_tokens": tokenizer.decode(with_specials.ids, skip_special_tokens=False),
        })
    return {"file": path.name, "size": tokenizer.get_vocab_size(), "texts": texts}


def main():
    made = {
        "hf_word_level.json": word_level(), "hf_byte_level.json": byte_level(),
        "hf_byte_level_prefix.json": byte_level_prefix(), "hf_metaspace.json": metaspace("always"),
        "hf_metaspace_first.json": metaspace("first", fuse_unk=True), "hf_metaspace_never.json": metaspace("never"),
        "hf_metaspace_whole.json": metaspace("always", split=False, ignore_merges=True),
        "hf_end_of_word.json": end_of_word(), "hf_continuing_prefix.json": continuing_prefix(),
        "hf_byte_fallback.json": byte_fallback(),
    }
    for name, tokenizer in made.items():
        (DATA / name).write_text(tokenizer.to_str(), encoding="utf-8")
    # Merges as older files write them: "a b".
    old = json.loads((DATA / "hf_byte_level.json").read_text(encoding="utf-8"))
    old["model"]["merges"] = [" ".join(merge) for merge in old["model"]["merges"]]
    (DATA / "hf_byte_level.json").write_text(json.dumps(old, ensure_ascii=False), encoding="utf-8")

    goldens = {"made_with": f"tokenizers {tokenizers.__version__}",
               "files": [describe(p) for p in sorted(DATA.glob("*.json")) if p.name != "goldens.json"]}
    (DATA / "goldens.json").write_text(json.dumps(goldens, ensure_ascii=False, separators=(",", ":")) + "\n",
                                       encoding="utf-8")


if __name__ == "__main__":
    main()
