"""Makes tests/goldens/languages: tiny random translators of many languages with small tokenizers of the classes of transformers,
as save_pretrained writes them (M2M-100's as it was published), and what transformers makes of texts: their ids in two source
languages and as targets, and translations into two languages with five beams. Texts are short lines of
tests/goldens/torture/torture.txt, and two of them together.

  scripts/python torch transformers tokenizers sentencepiece safetensors numpy && .venv/bin/python tests/oracles/language_goldens.py [FOLDER [NAME...]]
"""

import io
import json
import pathlib
import shutil
import sys

import sentencepiece
import torch
import transformers
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, M2M100Tokenizer, MBart50Tokenizer, MBartTokenizer, NllbTokenizer
from sentencepiece_goldens import write_rules
from translator_goldens import CLASSES, EOS, NEW_TOKENS, end_soon, flat, randomize

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "goldens"
TEXTS = ["the small dog sees a cat.", "two dogs run in the park", "Naïve  漢字 is <s> odd", "a"]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
# Class, family, first and second source language, options. The target of a text in one is the other.
FOLDERS = {
    "mbart": (MBartTokenizer, "mbart", "en_XX", "de_DE", {}),
    "mbart50": (MBart50Tokenizer, "mbart", "en_XX", "gl_ES", {}),
    "nllb": (NllbTokenizer, "m2m_100", "eng_Latn", "zho_Hant", {}),
    "nllb_legacy": (NllbTokenizer, "m2m_100", "eng_Latn", "deu_Latn", dict(legacy_behaviour=True)),
    "m2m100": (M2M100Tokenizer, "m2m_100", "en", "de", {}),
}
NLLB_CODES = ["deu_Latn", "eng_Latn", "zho_Hans", "zho_Hant", "ron_Latn"]


def lines():
    torture = (GOLDENS / "torture" / "torture.txt").read_text(encoding="utf-8").split("\n")
    odd = [line for line in torture if len(line) < 160]
    pairs = list(zip(odd, odd[17:] + odd[:17]))
    codes = ["en_XX", "eng_Latn", "deu_Latn", "<mask>", "</s>"]
    return (
        TEXTS
        + odd
        + [f"  {a}   {b} " for a, b in pairs]
        + [f"{b}{a}" for a, b in pairs]
        + [f"{codes[i % 5]} {a} {codes[i % 3]}{b}" for i, (a, b) in enumerate(pairs)]
    )


def to_learn_from():
    latin = [line for line in lines() if all(ord(c) < 0x180 for c in line)]
    return TEXTS[:2] * 9 + (GOLDENS / "text" / "small.txt").read_text(encoding="utf-8").splitlines() * 3 + latin


def make_m2m100(folder, model_type):
    """The files of facebook/m2m100_418M: fairseq's special tokens and then the pieces, and all codes of languages listed."""
    folder.mkdir()
    rules = folder / "rules.tsv"  # the published one has those of NFKC, 240 kB
    write_rules(rules)
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(to_learn_from()), model_writer=written, vocab_size=280, model_type="bpe",
        character_coverage=0.995, normalization_rule_tsv=str(rules), num_threads=1, minloglevel=2)
    rules.unlink()
    pieces = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
    known = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size()) if not pieces.is_control(i) and not pieces.is_unknown(i)]
    languages = sys.modules[M2M100Tokenizer.__module__].FAIRSEQ_LANGUAGE_CODES["m2m100"]
    special = dict(bos_token="<s>", eos_token="</s>", unk_token="<unk>", sep_token="</s>", pad_token="<pad>")
    (folder / "sentencepiece.bpe.model").write_bytes(written.getvalue())
    for file, content in {
        "vocab.json": {token: i for i, token in enumerate(SPECIAL + known)},
        "special_tokens_map.json": special | dict(additional_special_tokens=[f"__{language}__" for language in languages]),
        "tokenizer_config.json": dict(
            src_lang=None, tgt_lang=None, **special, language_codes="m2m100", name_or_path="m2m_100", num_madeup_words=8,
            tokenizer_class="M2M100Tokenizer"),
        "config.json": dict(model_type=model_type),
    }.items():
        (folder / file).write_text(json.dumps(content, ensure_ascii=False) + "\n")


def make_tokenizer(name, folder):
    tokenizer_class, family, first, _, options = FOLDERS[name]
    if tokenizer_class is M2M100Tokenizer:
        make_m2m100(folder, family)
        return AutoTokenizer.from_pretrained(folder)
    t = Tokenizer(models.BPE(unk_token="<unk>") if tokenizer_class is NllbTokenizer else models.Unigram())
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")])
    if tokenizer_class is NllbTokenizer:
        trainer = trainers.BpeTrainer(vocab_size=260, limit_alphabet=120, special_tokens=SPECIAL, show_progress=False)
    else:
        trainer = trainers.UnigramTrainer(vocab_size=420, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False)
    t.train_from_iterator(to_learn_from(), trainer)
    learned = json.loads(t.to_str())["model"]
    if tokenizer_class is NllbTokenizer:
        options = options | dict(
            vocab=learned["vocab"], merges=[tuple(m) for m in learned["merges"]], extra_special_tokens=NLLB_CODES)
    else:
        pieces = [(piece, score) for piece, score in learned["vocab"] if piece not in SPECIAL]
        codes = sys.modules[tokenizer_class.__module__].FAIRSEQ_LANGUAGE_CODES
        vocab = [(piece, 0.0) for piece in SPECIAL] + pieces + [(code, 0.0) for code in codes] + [("<mask>", 0.0)]
        options = options | dict(vocab=vocab)
    tokenizer_class(src_lang=first, **options).save_pretrained(folder)
    found = AutoTokenizer.from_pretrained(folder)
    assert type(found) is tokenizer_class, type(found)
    return found


def code_of(tokenizer, language):
    is_m2m100 = isinstance(tokenizer, M2M100Tokenizer)
    return tokenizer.get_lang_id(language) if is_m2m100 else tokenizer.convert_tokens_to_ids(language)


def codes_in_texts(folder, tokenizer, root):
    """Of M2M-100 they are tokens in a text where a file lists them."""
    texts = ["__de__ the dog", "the dog__de__ runs", "__de__", "__xx__ a dog </s> runs <s>x", "__ast__ __zu__ two"]
    plain = root / "plain"
    shutil.copytree(folder, plain)
    (plain / "special_tokens_map.json").unlink()
    unlisted = AutoTokenizer.from_pretrained(plain)
    shutil.rmtree(plain)
    tokenizer.src_lang = unlisted.src_lang = "en"
    return {key: [of(text)["input_ids"] for text in texts] for key, of in (("listed", tokenizer), ("unlisted", unlisted))} | {
        "of": texts}


def translations(model, tokenizer, target):
    ids = code_of(tokenizer, target)
    own = model.config.decoder_start_token_id
    force = {} if own > 3 else dict(forced_bos_token_id=ids)
    said = []
    for text in TEXTS:
        best = model.generate(
            input_ids=torch.tensor([tokenizer(text)["input_ids"]]), num_beams=5, early_stopping=True,
            max_new_tokens=NEW_TOKENS, **force)[0]
        if len(best) >= NEW_TOKENS:
            return None
        said.append(tokenizer.decode(best, skip_special_tokens=True))
    return said


def make(name, root):
    _, family, first, second, _ = FOLDERS[name]
    folder = root / name
    shutil.rmtree(folder, ignore_errors=True)
    tokenizer = make_tokenizer(name, folder)
    out = {}
    for key, language in (("first", first), ("second", second)):
        tokenizer.src_lang = language
        flat(f"{key}_ids", [tokenizer(line)["input_ids"] for line in lines()], out)
    tokenizer.src_lang, tokenizer.tgt_lang = first, second
    flat("target_ids", [tokenizer(text_target=line)["input_ids"] for line in lines()], out)
    config_class, model_class = CLASSES[family]
    start = code_of(tokenizer, second) if name == "mbart" else EOS
    rows = -(-len(tokenizer) // 8) * 8 if name == "m2m100" else len(tokenizer)  # some of its rows have no token
    for seed in range(500):
        config = config_class(
            vocab_size=rows, d_model=12, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2,
            decoder_attention_heads=3, encoder_ffn_dim=13, decoder_ffn_dim=11, max_position_embeddings=31,
            decoder_start_token_id=start)
        torch.manual_seed(seed)
        model = model_class(config).eval()
        randomize(model, torch.Generator().manual_seed(seed))
        if family == "mbart":  # once more
            end_soon(model)
        model.generation_config.bad_words_ids = [[1]] + [[row] for row in range(len(tokenizer), rows)]
        model.save_pretrained(folder)
        model = model_class.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()
        with torch.no_grad():
            said = [translations(model, tokenizer, language) for language in (second, first)]
        if None in said or (name == "m2m100" and (said[0] + said[1]).count("") > 1):
            continue
        if len(set(said[0])) > 1 and (name == "mbart" or said[0] != said[1]):
            break
    else:
        raise SystemExit(f"{name}: no seed")
    texts = {"texts": TEXTS, "into_second": said[0], "into_first": said[1]}
    if name == "m2m100":
        texts["codes"] = codes_in_texts(folder, tokenizer, root)
    (root / f"{name}.texts.json").write_text(json.dumps(texts, ensure_ascii=False, indent=1) + "\n")
    save_file(out, root / f"{name}.golden.safetensors")
    print(f"{name}: {len(lines())} lines, {len(tokenizer)} tokens, seed {seed}, {said}")


def main():
    transformers.utils.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDENS / "languages"
    root.mkdir(parents=True, exist_ok=True)
    (root / "lines.json").write_text(json.dumps(lines(), indent=0) + "\n")
    for name in sys.argv[2:] or FOLDERS:
        make(name, root)


if __name__ == "__main__":
    main()
