"""What the SentencePiece library says about tests/goldens/torture/torture.txt, with small models made here.

  scripts/python sentencepiece && .venv/bin/python tests/oracles/sentencepiece_goldens.py
  .venv/bin/python tests/oracles/sentencepiece_goldens.py --live DIR TEXT

--live trains a model of each kind with the normalisation nmt_nfkc (whose character map has 240 KB) on the text, and
writes DIR/KIND.model and DIR/answers.json.
"""

import io
import json
import pathlib
import sys
import tempfile

import sentencepiece
from torture_goldens import HERE as TORTURE, SMALL, fnv

HERE = TORTURE.parent / "sentencepiece"
RULES = {" ": ["\t", "\u00a0", "\u2003", "\u3000", "\u200b", "\ufeff", "\r"], "ガ": ["ｶﾞ"], "カ": ["ｶ"], "fi": ["ﬁ"], "é": ["e\u0301"],
         "ê": ["e\u0302"], "ế": ["e\u0302\u0301"], "株式会社": ["㍿"], "...": ["…"], " 1/2 ": ["½"], "ss": ["ß"], "A": ["Ａ", "🅰"]}
KINDS = {
    "unigram": dict(model_type="unigram", vocab_size=330, user_defined_symbols=["<sep>", "the quick", "漢字"]),
    "unigram_bytes": dict(model_type="unigram", vocab_size=560, byte_fallback=True, add_dummy_prefix=False,
                          remove_extra_whitespaces=False),
    "bpe": dict(model_type="bpe", vocab_size=330, user_defined_symbols=["<sep>", "abc", "字か"]),
    "bpe_bytes": dict(model_type="bpe", vocab_size=560, byte_fallback=True, split_digits=True),
}


def write_rules(path):
    path.write_text("".join("\t".join(" ".join(f"{ord(c):X}" for c in side) for side in (old, new)) + "\n"
                            for new, olds in RULES.items() for old in olds))


def train(lines, **settings):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, hard_vocab_limit=False, character_coverage=0.98,
        max_sentence_length=10000, minloglevel=2, **settings)
    return model.getvalue()


def answer(model, text):
    ids = model.encode(text)
    pieces = model.encode(text, out_type=str)
    decoded = model.decode(ids)
    told = {"ids": ids} if len(ids) <= 16 else {"count": len(ids)}
    return told | {"hashes": [fnv(ids), fnv(b for piece in pieces for b in piece.encode()), fnv(decoded.encode())]}


def write(folder, made, texts):
    kinds = []
    for kind, data in made.items():
        (folder / f"{kind}.model").write_bytes(data)
        model = sentencepiece.SentencePieceProcessor(model_proto=data)
        kinds.append(json.dumps({"kind": kind, "size": model.get_piece_size()})[:-1] + ', "texts": [\n' + ",\n".join(
            json.dumps(answer(model, t), separators=(",", ":")) for t in texts) + "]}")
    (folder / "answers.json").write_text("[" + ",\n".join(kinds) + "]\n")


def main():
    if sys.argv[1:2] == ["--live"]:
        folder, lines = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]).read_bytes().decode().split("\n")
        write(folder, {kind: train(lines, **settings | {"vocab_size": 1500}) for kind, settings in KINDS.items()}, lines)
        return
    torture = (TORTURE / "torture.txt").read_bytes().decode().split("\n")
    lines = SMALL.read_text(encoding="utf-8").splitlines() * 6 + torture[:10]
    with tempfile.TemporaryDirectory() as temporary:
        rules = pathlib.Path(temporary) / "rules.tsv"
        write_rules(rules)
        own = {"unigram": dict(normalization_rule_tsv=str(rules)), "unigram_bytes": dict(normalization_rule_name="identity"),
               "bpe": dict(normalization_rule_tsv=str(rules)), "bpe_bytes": dict(normalization_rule_name="identity")}
        made = {kind: train(lines, **settings, **own[kind]) for kind, settings in KINDS.items()}
    write(HERE, made, torture)


if __name__ == "__main__":
    main()
