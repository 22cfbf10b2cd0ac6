"""Makes tests/goldens/opus: tiny random translators in OPUS's layout, as MarianMTModel and MarianTokenizer save them, and
what they say about some texts: ids, the text of the ids, the greedy translation (in double precision).

  joint     one vocabulary with language codes, Unigram
  separate  a vocabulary for each side, BPE

  scripts/python transformers sentencepiece torch && .venv/bin/python tests/oracles/opus_goldens.py
"""

import json
import pathlib
import shutil
import tempfile

import sentencepiece
import torch
from sentencepiece_goldens import train
from torture_goldens import SMALL
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

HERE = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "opus"
GERMAN = ["Der Hund sieht die Katze im Garten.", "Ein kleines Mädchen liest ein Buch.", "Zwei Männer spielen Fußball.",
          "Die Frau trägt einen roten Hut.", "Übermorgen fahren wir nach Köln.", "Was machst du heute Abend?"] * 20
CODES = [">>deu<<", ">>fra<<"]
TEXTS = ["A dog runs.", ">>deu<< A dog runs.", ">>fra<<A dog runs.", ">>xyz<< A dog runs.", "A dog >>deu<< runs.",
         " >>deu<< A dog", ">>deu<<", ">>deu<<  >>fra<< a", ">>", ">>a b<<c", "", "   ", "The  quick   brown fox ",
         "the </s> end", "</s>>>deu<< a", "an <unk>word", "<pad> a", "☃☃ snow", "漢字かな", "é e\u0301 ﬁ ½", "a\tb\u00a0c",
         "x" * 300, "Was machst du heute Abend?", "Die Straße ist naß."]
NEW_TOKENS = 9


def model_of(lines, kind, size):
    return train(lines, model_type=kind, vocab_size=size, normalization_rule_name="identity")


def vocabulary_of(models, more=()):
    vocabulary = {"</s>": 0, "<unk>": 1}
    for data in models:
        model = sentencepiece.SentencePieceProcessor(model_proto=data)
        for i in range(3, model.get_piece_size()):
            if i % 11:  # Marian's vocabulary lacks some pieces
                vocabulary.setdefault(model.id_to_piece(i), len(vocabulary))
    for token in (*more, "<pad>"):
        vocabulary[token] = len(vocabulary)
    return vocabulary


def make(name, kind, separate):
    source = model_of(SMALL.read_text(encoding="utf-8").splitlines() * 6, kind, 97)
    target = model_of(GERMAN, kind, 83)
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    own = vocabulary_of([target]) if separate else None
    vocabulary = vocabulary_of([source], ["☃☃"]) if separate else vocabulary_of([source, target], ["☃☃", *CODES])
    with tempfile.TemporaryDirectory() as temporary:
        made = pathlib.Path(temporary)
        (made / "source.spm").write_bytes(source)
        (made / "target.spm").write_bytes(target)
        (made / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False))
        files = dict(source_spm=str(made / "source.spm"), target_spm=str(made / "target.spm"), vocab=str(made / "vocab.json"))
        if separate:
            (made / "target_vocab.json").write_text(json.dumps(own, ensure_ascii=False))
            files["target_vocab_file"] = str(made / "target_vocab.json")
        tokenizer = MarianTokenizer(source_lang="en", target_lang="de", separate_vocabs=separate, **files)
        tokenizer.save_pretrained(folder)
    pad = vocabulary["<pad>"]
    sizes = dict(vocab_size=len(vocabulary), decoder_vocab_size=len(own or vocabulary))
    if separate:  # one number is the id of <pad> for both sides
        own_pad = own.pop("<pad>")
        other = next(token for token, i in own.items() if i == pad) if pad < len(own) else None
        assert other is None and own_pad <= pad
        for i in range(len(own), pad):
            own[f"<more{i}>"] = i
        own["<pad>"] = pad
        (folder / "target_vocab.json").write_text(json.dumps(own, ensure_ascii=False))
        tokenizer = MarianTokenizer.from_pretrained(folder)
        sizes["decoder_vocab_size"] = len(own)
    torch.manual_seed(5)
    config = MarianConfig(d_model=14, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=7,
                          encoder_ffn_dim=19, decoder_ffn_dim=17, activation_function="swish", scale_embedding=True,
                          max_position_embeddings=512, share_encoder_decoder_embeddings=not separate, pad_token_id=pad,
                          eos_token_id=0, forced_eos_token_id=0, decoder_start_token_id=pad, bad_words_ids=[[pad]], init_std=0.4,
                          **sizes)
    model = MarianMTModel(config).eval()
    model.generation_config.update(bad_words_ids=[[pad]], num_beams=1, max_length=512, pad_token_id=pad, eos_token_id=0,
                                   forced_eos_token_id=0, decoder_start_token_id=pad)
    model.save_pretrained(folder)
    model = model.double()
    answers = []
    for text in TEXTS:
        ids = tokenizer(text)["input_ids"]
        with torch.no_grad():
            said = model.generate(torch.tensor([ids]), max_new_tokens=NEW_TOKENS, num_beams=1, do_sample=False)
        answers.append({"text": text, "ids": ids, "target_ids": tokenizer(text_target=text)["input_ids"],
                        "decoded": tokenizer.decode(tokenizer(text_target=text)["input_ids"], skip_special_tokens=True),
                        "translation": tokenizer.decode(said[0], skip_special_tokens=True)})
    (HERE / f"{name}.json").write_text("[\n" + ",\n".join(json.dumps(a) for a in answers) + "\n]\n")


def main():
    make("joint", "unigram", False)
    make("separate", "bpe", True)


if __name__ == "__main__":
    main()
