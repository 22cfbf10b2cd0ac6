"""Makes tests/goldens/tokenizer_config/saved_VERSION.json: the files of tokenizers as transformers saves them with the defaults of
its classes, from small vocabularies. multihead says no word about them. Run it with each version of transformers that the
tests name; it needs sentencepiece.

    venv/bin/python tests/oracles/saved_tokenizers.py
"""

import json
import os
import pathlib
import sys
import tempfile

os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import sentencepiece
import transformers
from transformers import AutoTokenizer

GOLDENS = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "tokenizer_config"
TEXT = [
    "the small dog sees a cat in the garden .",
    "Two dogs run over the green hill and a cat sleeps .",
    "She buys red apples and pears and nuts ; is it much ?",
] * 5
# model_type: the class, and what its vocabulary is made of
CLASSES = {
    "bert": ("BertTokenizer", "word_piece"),
    "distilbert": ("DistilBertTokenizer", "word_piece"),
    "electra": ("ElectraTokenizer", "word_piece"),
    "mpnet": ("MPNetTokenizer", "word_piece"),
    "roberta": ("RobertaTokenizer", "byte_level"),
    "gpt2": ("GPT2Tokenizer", "byte_level"),
    "qwen2": ("Qwen2Tokenizer", "byte_level"),
    "qwen3": ("Qwen2Tokenizer", "byte_level"),
    "xlm-roberta": ("XLMRobertaTokenizer", "unigram"),
    "camembert": ("CamembertTokenizer", "unigram"),
    "llama": ("LlamaTokenizer", "bpe"),
    "mistral": ("LlamaTokenizer", "bpe"),
    "modernbert": ("PreTrainedTokenizer", "byte_level"),
}


def add_names(vocabulary, names):
    for name in names:
        vocabulary.setdefault(name, len(vocabulary))
    return vocabulary


def make_files(folder, model_type, kind):
    """The files that the class is made of where there is no tokenizer.json."""
    if kind == "word_piece":
        model = json.loads((GOLDENS / "word_piece.json").read_text())["model"]
        names = ["<s>", "</s>", "<pad>", "<mask>"] if model_type == "mpnet" else []
        vocabulary = add_names(model["vocab"], names)
        (folder / "vocab.txt").write_text("".join(token + "\n" for token in sorted(vocabulary, key=vocabulary.get)))
    elif kind == "byte_level":
        model = json.loads((GOLDENS / "byte_level.json").read_text())["model"]
        names = ["<|endoftext|>"] if model_type in ("gpt2", "qwen2", "qwen3") else []
        (folder / "vocab.json").write_text(json.dumps(add_names(model["vocab"], names)))
        merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
        (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(merge + "\n" for merge in merges))
    else:
        (folder / "text").write_text("\n".join(TEXT))
        # A short table of characters, where NFKC's has 200 kB: full-width A to Z.
        rules = [f"{0xFF21 + i:X}\t{0x41 + i:X}\n" for i in range(26)]
        (folder / "rules.tsv").write_text("".join(rules))
        name = "tokenizer.model" if kind == "bpe" else "sentencepiece.bpe.model"
        sentencepiece.SentencePieceTrainer.train(
            input=str(folder / "text"),
            model_prefix=str(folder / "m"),
            vocab_size=299 if kind == "bpe" else 49,
            model_type=kind,
            byte_fallback=kind == "bpe",
            hard_vocab_limit=False,
            normalization_rule_tsv=str(folder / "rules.tsv"),
            minloglevel=2,
        )
        (folder / "m.model").rename(folder / name)
        for rest in ("text", "rules.tsv", "m.vocab"):
            (folder / rest).unlink()


def saved(model_type, class_name, kind):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "from").mkdir()
        if class_name == "PreTrainedTokenizer":
            kind_file = (GOLDENS / "byte_level.json").read_text()
            (folder / "from" / "tokenizer.json").write_text(kind_file)
            tokenizer = transformers.PreTrainedTokenizerFast(
                tokenizer_file=str(folder / "from" / "tokenizer.json"), unk_token="<unk>", cls_token="<s>", sep_token="</s>"
            )
        else:
            make_files(folder / "from", model_type, kind)
            cls = getattr(transformers, class_name + ("Fast" if transformers.__version__.startswith("4") else ""))
            tokenizer = cls.from_pretrained(folder / "from")
        tokenizer.save_pretrained(folder / "to")
        (folder / "to" / "config.json").write_text(json.dumps({"model_type": model_type}))
        again = AutoTokenizer.from_pretrained(folder / "to")
        files = {}
        for file in sorted((folder / "to").iterdir()):
            if file.suffix == ".json" and file.name not in ("config.json", "vocab.json"):
                files[file.name] = json.loads(file.read_text())
        line = "the small Dog sees café 12 cats"
        return {"files": files, "line": line, "ids": again(line)["input_ids"], "size": len(again)}


def main():
    found = {}
    for model_type, (class_name, kind) in CLASSES.items():
        try:
            found[model_type] = saved(model_type, class_name, kind)
        except Exception as error:  # noqa: BLE001
            print(f"left out: {model_type}: {type(error).__name__}: {error}".splitlines()[0][:200], file=sys.stderr)
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}" for name, one in found.items())
    (GOLDENS / f"saved_{transformers.__version__}.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
