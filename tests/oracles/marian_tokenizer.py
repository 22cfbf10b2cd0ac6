"""What MarianTokenizer says about a text (a line each), with the models of tests/goldens/sentencepiece and a vocab.json
that lacks some of their pieces. Writes DIR/KIND/vocab.json and DIR/KIND/answers.json.

  scripts/python transformers sentencepiece torch && .venv/bin/python tests/oracles/marian_tokenizer.py DIR TEXT
"""

import json
import pathlib
import shutil
import sys

import sentencepiece
from transformers import MarianTokenizer

MODELS = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "sentencepiece"


def main():
    lines = pathlib.Path(sys.argv[2]).read_bytes().decode().split("\n")
    for path in MODELS.glob("*.model"):
        folder = pathlib.Path(sys.argv[1]) / path.stem
        folder.mkdir()
        for name in ("source.spm", "target.spm"):
            shutil.copy(path, folder / name)
        model = sentencepiece.SentencePieceProcessor(model_file=str(path))
        vocabulary = {"</s>": 0, "<unk>": 1}
        for i in range(3, model.get_piece_size()):
            if i % 7:
                vocabulary.setdefault(model.id_to_piece(i), len(vocabulary))
        for piece in ("☃☃", "𝒳", ">>deu<<", "<pad>"):  # runs that the model does not know
            vocabulary.setdefault(piece, len(vocabulary))
        (folder / "vocab.json").write_text(json.dumps(vocabulary))
        (folder / "tokenizer_config.json").write_text(json.dumps({"source_lang": "en", "target_lang": "de"}))
        tokenizer = MarianTokenizer.from_pretrained(str(folder))
        ids = [tokenizer(line)["input_ids"] for line in lines]
        decoded = [tokenizer.decode(one, skip_special_tokens=True) for one in ids]
        (folder / "answers.json").write_text(json.dumps({"ids": ids, "decoded": decoded}))


if __name__ == "__main__":
    main()
