"""Small tokenizers of the classes that transformers has for encoder-decoders and DeBERTa, learned from given lines: family_goldens.py asks them.

Each function gives a tokenizers.Tokenizer as save_pretrained of the class writes it.
"""

import json
import sys

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import BartTokenizer, MBart50Tokenizer, MBartTokenizer, NllbTokenizer, T5Tokenizer
from transformers.models.deberta_v2 import DebertaV2Tokenizer

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
NLLB_CODES = ["deu_Latn", "eng_Latn", "zho_Hans", "zho_Hant", "ron_Latn"]


def learned(model, trainer, pre_tokenizer, lines):
    t = Tokenizer(model)
    t.pre_tokenizer = pre_tokenizer
    t.train_from_iterator(lines, trainer)
    return json.loads(t.to_str())["model"]


def words_with_metaspace():
    return pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")])


def unigram_pieces(lines, special):
    unknown = "[UNK]" if "[UNK]" in special else "<unk>"
    trainer = trainers.UnigramTrainer(vocab_size=420, special_tokens=special, unk_token=unknown, show_progress=False)
    return [(piece, round(score, 4)) for piece, score in learned(models.Unigram(), trainer, words_with_metaspace(), lines)["vocab"]]


def bart(lines):
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=[*SPECIAL, "<mask>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    model = learned(models.BPE(), trainer, pre_tokenizers.ByteLevel(add_prefix_space=False), lines)
    return BartTokenizer(vocab=model["vocab"], merges=[tuple(merge) for merge in model["merges"]])._tokenizer


def t5(lines, character_map, first=("<pad>", "</s>", "<unk>")):
    """With sentinels behind the pieces, and the map of characters that SentencePiece's models of T5 have."""
    made = T5Tokenizer(vocab=unigram_pieces(lines, list(first)), extra_ids=3, _spm_precompiled_charsmap=character_map)
    return made._tokenizer


def t5_bytes(lines, character_map):
    """As the models of mT5 and umT5: what no piece has is written as bytes."""
    t = t5(lines, character_map)
    document = json.loads(t.to_str())
    model = document["model"]
    sentinels = document["added_tokens"][3:]
    model["vocab"][3:3] = [[f"<0x{byte:02X}>", -9.5] for byte in range(256)]
    model["byte_fallback"] = True
    for token in sentinels:
        token["id"] += 256
    t = Tokenizer.from_str(json.dumps(document))
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="always")])
    return t


def deberta(lines, **settings):
    names = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    made = DebertaV2Tokenizer(vocab=unigram_pieces(lines, names), **settings)
    return made._tokenizer


def of_languages(tokenizer_class, lines):
    pieces = [piece for piece in unigram_pieces(lines, SPECIAL) if piece[0] not in SPECIAL]
    codes = sys.modules[tokenizer_class.__module__].FAIRSEQ_LANGUAGE_CODES
    vocab = [(piece, 0.0) for piece in SPECIAL] + pieces + [(code, 0.0) for code in codes] + [("<mask>", 0.0)]
    return tokenizer_class(vocab=vocab, src_lang="de_DE")._tokenizer


def mbart(lines):
    return of_languages(MBartTokenizer, lines)


def mbart50(lines):
    return of_languages(MBart50Tokenizer, lines)


def nllb(lines, legacy_behaviour=False):
    trainer = trainers.BpeTrainer(vocab_size=360, limit_alphabet=120, special_tokens=SPECIAL, show_progress=False)
    model = learned(models.BPE(unk_token="<unk>"), trainer, words_with_metaspace(), lines)
    return NllbTokenizer(
        vocab=model["vocab"], merges=[tuple(merge) for merge in model["merges"]], extra_special_tokens=NLLB_CODES,
        src_lang="deu_Latn", legacy_behaviour=legacy_behaviour)._tokenizer


def nllb_legacy(lines):
    return nllb(lines, legacy_behaviour=True)
