"""Tokenizers with the parts of those of Gemma, GPT-NeoX, GPT-Neo, OPT, Phi, Phi-3, OLMo 2, SmolLM3, BART, T5, mBART, NLLB and
others, small and learned here, and what Hugging Face tokenizers and SentencePiece say about odd lines, the first also about random ids.

  scripts/python tokenizers sentencepiece transformers && .venv/bin/python tests/oracles/family_goldens.py
  .venv/bin/python tests/oracles/family_goldens.py --live FILE SEED COUNT

The first makes tests/goldens/families; --live writes COUNT lines and the answers about them, in the same form, to FILE.
"""

import io
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_OFFLINE"] = "1"

import sentencepiece
import tokenizers
import translator_tokenizers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torture_goldens import ENDINGS, GPT2, LLAMA3, QWEN2, SMALL, answer, character_map, fnv, split
from transformers import AutoTokenizer

# As tiktoken writes the words of GPT-2 and of cl100k, which are Llama 3's.
GPT2_TIKTOKEN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
TIKTOKEN = r"[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
HERE = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "families"
CODE = ["def f(x):\n    if x > 1234567:\n\t\treturn {'a': [1, 2.5]}\n\n\n    # 3rd  line\n", "        <td>1</td>\n    </table>",
        "for (int i = 0; i < 10; ++i) {\r\n    sum += a[i];\r\n}\r\n", "It's we'll THEY'RE i'd 'tis", "\n\n\n\t\tx  =   1    ;",
        "漢字かな テスト 한국어 नमस्ते שלום مرحبا", "naïve café e\u0301 ä ﬁ ½ 😀 👍🏽", "<br> <p>  </p>   ▁▁ ▁"]


def learn_from():
    return SMALL.read_text(encoding="utf-8").splitlines() * 3 + CODE * 6


def added(content, **flags):
    return AddedToken(content, **{"normalized": False, "special": True} | flags)


def runs(of, longest, shortest=2):
    return [of * n for n in range(longest, shortest - 1, -1)]


def starts_with(token, pair=None):
    return dict(single=f"{token} $A", pair=pair or f"{token} $A {token}:1 $B:1")


def template(t, single, pair):
    names = sorted({name.split(":")[0] for name in single.split() if not name.startswith("$")})
    t.post_processor = processors.TemplateProcessing(single=single, pair=pair,
                                                     special_tokens=[(name, t.token_to_id(name)) for name in names])


def with_model(t, **settings):
    document = json.loads(t.to_str())
    document["model"].update(settings)
    return Tokenizer.from_str(json.dumps(document))


def with_bytes(normalizer, pre_tokenizer, first, later=()):
    """BPE with byte fallback: the first tokens, the bytes, what is learned."""
    t = Tokenizer(models.BPE(unk_token="<unk>"))
    t.normalizer = normalizer
    t.train_from_iterator(learn_from(), trainers.BpeTrainer(vocab_size=260, limit_alphabet=90, show_progress=False))
    learned = json.loads(t.to_str())["model"]
    vocabulary = {}
    for token in [*first, *later, *(f"<0x{b:02X}>" for b in range(256)), *sorted(learned["vocab"], key=learned["vocab"].get)]:
        vocabulary.setdefault(token, len(vocabulary))
    merges = [tuple(merge) for merge in learned["merges"]]
    merges += [(a * n, a) for a in "\n▁" if a in vocabulary for n in range(1, 5) if a * (n + 1) in vocabulary]
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=list(dict.fromkeys(merges)), unk_token="<unk>", fuse_unk=True,
                                byte_fallback=True))
    made.normalizer, made.pre_tokenizer = normalizer, pre_tokenizer
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return made


def gemma(pre_tokenizer):
    names = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<start_of_turn>", "<end_of_turn>"]
    plain = [*runs("\n", 8, 1)[::-1], *runs("▁", 8, 1)[::-1], "\t", "\t\t", "<table>", "</table>", "<td>"]
    t = with_bytes(normalizers.Replace(" ", "▁"), pre_tokenizer, names, plain)
    t.add_special_tokens([added(name) for name in names])
    t.add_tokens([added(token, special=False) for token in plain if token not in "\n▁\t"])
    template(t, **starts_with("<bos>"))
    return t


def gemma2():
    return gemma(pre_tokenizers.Split(" ", "merged_with_previous"))


def gemma_whole():
    return gemma(None)


def phi3():
    names = ["<unk>", "<s>", "</s>", "<|endoftext|>", "<|assistant|>", "<|user|>", "<|end|>"]
    t = with_bytes(normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None, names[:3])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.add_special_tokens([added("<unk>"), added("<s>"), added("</s>", rstrip=True, special=False), added("<|endoftext|>")])
    t.add_special_tokens([added(name, rstrip=True) for name in names[4:]])
    template(t, **starts_with("<s>"))
    return t


def byte_level(*steps, names=("<|endoftext|>",), prefix=False, **settings):
    t = Tokenizer(models.BPE())
    alone = not steps
    steps = [*steps, pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=alone)]
    t.pre_tokenizer = steps[0] if alone else pre_tokenizers.Sequence(steps)
    t.train_from_iterator(learn_from(), trainers.BpeTrainer(
        vocab_size=420, special_tokens=[added(name) for name in names],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t = with_model(t, **settings)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=True)
    return t


def gpt_neox():
    t = byte_level(names=["<|endoftext|>", "<|padding|>"])
    t.normalizer = normalizers.NFC()
    t.add_tokens([AddedToken(run, normalized=True) for run in runs(" ", 24)])
    t.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=True)
    return t


def gpt_neo():
    t = byte_level()
    t.add_special_tokens([added("<|endoftext|>", normalized=True)])
    return with_model(t, unk_token="<|endoftext|>", continuing_subword_prefix="", end_of_word_suffix="")


def opt():
    t = byte_level(names=["<s>", "<pad>", "</s>", "<unk>"])
    template(t, **starts_with("</s>", "</s> $A </s> $B"))
    return t


def phi():
    t = byte_level()
    t.add_tokens([AddedToken(run, normalized=True) for run in [*runs(" ", 31), *runs("\t", 9)]])
    t.post_processor = processors.ByteLevel(add_prefix_space=True, trim_offsets=False)
    return t


def olmo2():
    t = byte_level(split(LLAMA3), names=["<|endoftext|>", "<|pad|>"])
    t.add_tokens([added("|||IP_ADDRESS|||", special=False), added("<|extra_id_0|>", special=False)])
    template(t, **starts_with("<|endoftext|>", "<|endoftext|> $A $B"))
    return t


def smollm3():
    t = byte_level(split(LLAMA3), names=["<|begin_of_text|>", "<|im_start|>", "<|im_end|>"], ignore_merges=True)
    t.add_tokens([added("<think>", special=False), added("</think>", special=False), added("<|reserved|>", lstrip=True)])
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        **starts_with("<|begin_of_text|>"), special_tokens=[("<|begin_of_text|>", 0)])])
    return t


def qwen():
    t = byte_level(split(QWEN2))
    t.normalizer = normalizers.NFC()
    t.add_tokens([added("<tool_call>", special=False)])
    return t


def digits():
    return byte_level(split(r"\p{N}"), split(GPT2))


def three_digits():
    return byte_level(split(r"\p{N}{1,3}"), split(GPT2_TIKTOKEN))


def tiktoken():
    return byte_level(split(f"'(?i:[sdmt]|ll|ve|re)|{TIKTOKEN}"))


def tiktoken_endings():
    return byte_level(split(f"(?i:{ENDINGS})|{TIKTOKEN}"))


def bart():
    return translator_tokenizers.bart(learn_from())


def t5():
    return translator_tokenizers.t5(learn_from(), character_map())


def t5_bytes():
    return translator_tokenizers.t5_bytes(learn_from(), character_map())


def deberta():
    return translator_tokenizers.deberta(learn_from())


def deberta_lower():
    return translator_tokenizers.deberta(learn_from(), do_lower_case=True, split_by_punct=True, add_prefix_space=False)


def mbart():
    return translator_tokenizers.mbart(learn_from())


def mbart50():
    return translator_tokenizers.mbart50(learn_from())


def nllb():
    return translator_tokenizers.nllb(learn_from())


def nllb_legacy():
    return translator_tokenizers.nllb_legacy(learn_from())


# As the SentencePiece models of Gemma and of Llama 2 and Phi-3 were trained.
TRAINED = dict(model_type="bpe", vocab_size=440, byte_fallback=True, split_digits=True, remove_extra_whitespaces=False,
               allow_whitespace_only_pieces=True, normalization_rule_name="identity", hard_vocab_limit=False,
               character_coverage=0.98, minloglevel=2)
SENTENCE_PIECE = {
    "gemma_pieces": dict(
        add_dummy_prefix=False, pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>", bos_piece="<bos>",
        user_defined_symbols=["<mask>", *runs("\n", 4, 1), *runs("▁", 5), "\t", "\t\t", "<table>", "<td>", "<start_of_turn>"]),
    "llama_pieces": dict(),
    "deberta_pieces": dict(
        model_type="unigram", byte_fallback=False, pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]", bos_piece="[CLS]",
        eos_piece="[SEP]", unk_piece="[UNK]"),
}


def sentence_piece(settings):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(learn_from()), model_writer=model, **(TRAINED | settings))
    return model.getvalue()


FAMILIES = [gemma2, gemma_whole, phi3, gpt_neox, gpt_neo, opt, phi, olmo2, smollm3, qwen, digits, three_digits,
            tiktoken, tiktoken_endings, bart, t5, t5_bytes, deberta, deberta_lower, mbart, mbart50, nllb, nllb_legacy]
SPECIAL = ["<bos>", "<eos>", "<unk>", "<start_of_turn>", "<td>", "</table>", "<s>", "</s>", "<|user|>", "<|end|>", "<|assistant|>",
           "<|endoftext|>", "<|padding|>", "<pad>", "<|begin_of_text|>", "<|im_start|>", "<think>", "</think>", "<|reserved|>",
           "|||IP_ADDRESS|||", "<0x0A>", "<tool_call>", "▁", "▁▁▁", "Ġ", "<extra_id_1>", "<mask>", "[MASK]", "[SEP]", "deu_Latn", "en_XX"]
WORDS = ["the", "The", "it's", "WE'LL", "'s", "don't", "ſ'ſ", "Katze", "grüne", "Straße", "naïve", "x1", "C++", "a_b", "ΑΣ", "кот",
         "漢字かな", "한국어", "नमस्ते", "שָׁלוֹם", "مرحبا", "ไทย", "e\u0301", "q\u0323\u0307", "\u1112\u1161\u11ab", "ﬁ", "½",
         "Ⅷ", "²", "٣٤٥٦", "𝟙𝟚", "😀", "👨‍👩‍👧", "🇩🇪",
         "\ufffd", "\ufffd\ufffd", "\u200b", "\ufeff", "\u00ad", "\x00", "\x07", "\x7f"]
SPACES = [" ", "  ", "   ", "\n", "\n\n", "\n\n\n", "\r\n", "\t", "\t\t", " \n", "\n ", "\u00a0", "\u3000", "\u2028",
          "\x85", "\x0b"]
SIGNS = list(".,;:!?'\"()[]{}<>/\\|-_=+*&^%$#@~`") + ["...", "--", "//", "”", "。", "‘s", "€", "→", "!!\n", "}\n\n"]


def odd_line(rng):
    parts = []
    for _ in range(rng.randrange(16)):
        kind = rng.randrange(12)
        if kind < 3:
            parts.append(rng.choice(WORDS))
        elif kind < 5:
            parts.append(rng.choice(SPACES))
        elif kind == 5:
            parts.append(rng.choice(" \n\t▁") * rng.randrange(1, 40))
        elif kind == 6:
            parts.append(rng.choice(SIGNS) * rng.choice([1, 1, 2, 5]))
        elif kind == 7:
            parts.append(str(rng.randrange(10 ** rng.randrange(1, 9))))
        elif kind == 8:
            parts.append(rng.choice(SPECIAL))
        elif kind == 9:
            parts.append(" " + rng.choice(rng.choice(CODE).split(" ")))
        elif kind == 10:
            broken = rng.choice(WORDS).encode() + rng.randbytes(3)
            parts.append(broken[rng.randrange(2):].decode(errors="replace"))
        else:
            low, high = rng.choice([(0x20, 0x250), (0x300, 0x370), (0x370, 0x700), (0x900, 0x1200), (0x1E00, 0x2C00),
                                    (0x3040, 0x9FFF), (0xFB00, 0xFE00), (0x1D400, 0x1D800), (0x1F300, 0x1FA00)])
            parts.append("".join(chr(rng.randrange(low, high)) for _ in range(rng.randrange(1, 6))))
    return "".join(parts)


def odd_lines(seed, count):
    rng = random.Random(seed)
    return ["", " ", "\n", *(odd_line(rng) for _ in range(count - 3))]


def answers(name, lines, seed):
    tokenizer = Tokenizer.from_file(str(HERE / f"{name}.json"))
    size = tokenizer.get_vocab_size()
    rng = random.Random(seed)
    lists = [[rng.randrange(size) for _ in range(rng.randrange(1, 12))] for _ in range(len(lines) // 4)]
    return {"file": f"{name}.json", "size": size, "texts": [answer(tokenizer, line, False) for line in lines],
            "decoded": [[ids, fnv(tokenizer.decode(ids).encode())] for ids in lists]}


def piece_answer(model, text):
    ids = model.encode(text)
    pieces = model.encode(text, out_type=str)
    return {"ids": ids if len(ids) <= 16 else [],
            "hashes": [fnv(ids), fnv(b for piece in pieces for b in piece.encode()), fnv(model.decode(ids).encode())]}


def piece_answers(name, lines):
    model = sentencepiece.SentencePieceProcessor(model_file=str(HERE / f"{name}.model"))
    return {"file": f"{name}.model", "size": model.get_piece_size(), "texts": [piece_answer(model, line) for line in lines]}


# Folders with tokenizer.model (DeBERTa: spm.model) and no tokenizer.json: what config.json and tokenizer_config.json say, and the model.
FOLDERS = [
    ("gemma2", {"tokenizer_class": "GemmaTokenizer", "add_bos_token": True}, "gemma_pieces"),
    ("gemma", {}, "gemma_pieces"),
    ("llama", {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "add_eos_token": True}, "llama_pieces"),
    ("llama", {"tokenizer_class": "LlamaTokenizer", "legacy": True}, "llama_pieces"),
    ("llama", {}, "llama_pieces"),
    ("phi3", {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "legacy": False, "added_tokens_decoder": {
        "2": {"content": "</s>", "rstrip": True, "normalized": False, "special": False}}}, "llama_pieces"),
    ("deberta-v2", {"do_lower_case": False, "vocab_type": "spm"}, "deberta_pieces"),
    ("deberta-v2", {"do_lower_case": True, "split_by_punct": True, "tokenizer_class": "DebertaV2Tokenizer"}, "deberta_pieces"),
]


def folder_answers(model_type, said, model, lines):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        shutil.copy(HERE / f"{model}.model", folder / ("spm.model" if model_type == "deberta-v2" else "tokenizer.model"))
        (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
        (folder / "tokenizer_config.json").write_text(json.dumps(said))
        tokenizer = AutoTokenizer.from_pretrained(folder)
        texts = []
        for line in lines:
            ids = tokenizer(line)["input_ids"]
            texts.append([fnv(ids), fnv(tokenizer.decode(ids, skip_special_tokens=True).encode())])
        return {"model_type": model_type, "said": said, "model": f"{model}.model", "size": len(tokenizer), "texts": texts}


def compact(lines, files, folders):
    def dump(value):
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    listed = ",\n".join(f'{{"file":{dump(f["file"])},"size":{f["size"]},"decoded":{dump(f.get("decoded", []))},"texts":[\n' +
                        ",\n".join(map(dump, f["texts"])) + "]}" for f in files)
    return (f'{{"made_with":"tokenizers {tokenizers.__version__}","lines":[\n' + ",\n".join(map(dump, lines)) +
            f'],"files":[\n{listed}],\n"folders":[\n' + ",\n".join(map(dump, folders)) + "]}\n")


def main():
    live = sys.argv[1:2] == ["--live"]
    seed, count = (int(sys.argv[3]), int(sys.argv[4])) if live else (5, 60)
    HERE.mkdir(exist_ok=True)
    for make in FAMILIES if not live else []:
        path = HERE / f"{make.__name__}.json"
        if not path.exists():  # two trainings differ in the order of equals: delete a file to make it anew
            path.write_text(make().to_str(), encoding="utf-8")
    for name, settings in SENTENCE_PIECE.items() if not live else []:
        path = HERE / f"{name}.model"
        if not path.exists():
            path.write_bytes(sentence_piece(settings))
    lines = odd_lines(seed, count)
    out = pathlib.Path(sys.argv[2]) if live else HERE / "goldens.json"
    files = [answers(make.__name__, lines, seed) for make in FAMILIES]
    files += [piece_answers(name, lines) for name in SENTENCE_PIECE]
    folders = [folder_answers(*folder, lines) for folder in FOLDERS]
    out.write_text(compact(lines, files, folders), encoding="utf-8")


if __name__ == "__main__":
    main()
