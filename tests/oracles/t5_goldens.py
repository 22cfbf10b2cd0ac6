"""Makes tests/goldens/t5, mt5 and umt5, as translator_goldens.py makes those of BART: tiny random models, and what transformers
computes with them in double precision.

  scripts/python torch transformers tokenizers safetensors numpy && .venv/bin/python tests/oracles/t5_goldens.py [FOLDER [NAME ...]]
"""

import json
import pathlib
import shutil
import sys

import numpy as np
import torch
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    AutoTokenizer,
    MT5Config,
    MT5ForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
    T5Tokenizer,
    UMT5Config,
    UMT5ForConditionalGeneration,
)
from translator_goldens import NEW_TOKENS, flat, read, search

PAD, EOS = 0, 1
CLASSES = {
    "t5": (T5Config, T5ForConditionalGeneration),
    "mt5": (MT5Config, MT5ForConditionalGeneration),
    "umt5": (UMT5Config, UMT5ForConditionalGeneration),
}
FIRST = dict(vocab_size=47, d_model=22, d_kv=5, d_ff=31, num_layers=2, num_decoder_layers=3, num_heads=3)
SECOND = dict(vocab_size=41, d_model=13, d_kv=6, d_ff=19, num_layers=3, num_decoder_layers=1, num_heads=5)
THIRD = dict(vocab_size=37, d_model=17, d_kv=3, d_ff=11, num_layers=1, num_decoder_layers=2, num_heads=7)
BUCKETS = dict(relative_attention_num_buckets=11, relative_attention_max_distance=13)
# Family/name: sizes and options; how it is stored; whether the output layer has a matrix of its own; the length penalty of its beams; the
# seed, so that beams differ and end.
MODELS = {
    "t5/plain": (FIRST, torch.float32, False, 1.0, 8),
    "t5/buckets": (SECOND | BUCKETS | dict(decoder_start_token_id=5), torch.float32, False, 0.0, 3),
    "t5/untied_f16": (THIRD | dict(feed_forward_proj="gelu"), torch.float16, True, 2.0, 11),
    "t5/flan_bf16": (SECOND | dict(feed_forward_proj="gated-gelu"), torch.bfloat16, True, 1.0, 11),
    "t5/text": (THIRD, torch.float32, False, 1.0, 113),
    "mt5/plain": (FIRST, torch.float32, False, 0.5, 8),
    "mt5/untied_bf16": (THIRD | BUCKETS | dict(feed_forward_proj="gated-silu"), torch.bfloat16, True, 1.0, 2),
    "umt5/plain": (FIRST, torch.float32, False, 1.0, 5),
    "umt5/unscaled": (SECOND | BUCKETS | dict(scale_decoder_outputs=False), torch.float32, False, 0.7, 25),
}
TEXTS = ["the small dog sees a cat.", "two  dogs <extra_id_0> in the park", "Naïve 漢字 is </s> odd", "a"]


def make_tokenizer(folder):
    """Unigram pieces and two sentinels behind them."""
    t = Tokenizer(models.Unigram())
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    t.train_from_iterator(
        TEXTS[:2] * 3 + ["the dog runs, and the cats see the dogs in the park."] * 9,
        trainers.UnigramTrainer(vocab_size=60, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False))
    T5Tokenizer(vocab=[tuple(piece) for piece in json.loads(t.to_str())["model"]["vocab"]], extra_ids=2).save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder)


def make_texts(name, root, model):
    """The ids of texts and their translations."""
    tokenizer, out, said = make_tokenizer(root / name), {}, []
    assert len(tokenizer) <= model.config.vocab_size, len(tokenizer)
    ids = [tokenizer(text)["input_ids"] for text in TEXTS]
    flat("text_ids", ids, out)
    for text in ids:
        best = model.generate(input_ids=torch.tensor([text]), num_beams=5, early_stopping=True, max_new_tokens=NEW_TOKENS)[0]
        assert len(best) < NEW_TOKENS, "a text that is cut off: take another seed"
        said.append(tokenizer.decode(best, skip_special_tokens=True))
    rows = [{"text": text, "translation": translation} for text, translation in zip(TEXTS, said)]
    (root / f"{name}.texts.json").write_text(json.dumps(rows, indent=1) + "\n")
    return out


def randomize(model, generator):
    """Weights that make attention sharp, every parameter matter, and sentences end."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():  # one that is tied once
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            if "layer_norm" in name:
                value = 0.3 + 1.5 * noise
            elif "relative_attention_bias" in name:
                value = 1.3 * noise
            elif "shared" in name or "lm_head" in name:
                value = 0.9 * noise
                value[EOS] *= 2
            elif name.endswith((".q.weight", ".k.weight")):
                value = noise / parameter.shape[1] ** 0.5 / 1.5
            else:
                value = 1.3 * noise / parameter.shape[1] ** 0.5
            parameter.copy_(value.to(parameter.dtype))


def as_older_versions_save(file):
    """A config.json as that of FLAN-T5."""
    config = json.loads(file.read_text())
    for key in ("scale_decoder_outputs", "dense_act_fn", "is_gated_act", "classifier_dropout", "is_decoder", "dtype"):
        del config[key]
    config |= dict(tie_word_embeddings=False, torch_dtype="bfloat16", n_positions=53, output_past=True)
    file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def make_model(name, root, seed):
    options, stored, own_output, _, _ = MODELS[name]
    config_class, model_class = CLASSES[name.split("/")[0]]
    generator = torch.Generator().manual_seed(seed)
    model = model_class(config_class(**{"decoder_start_token_id": PAD} | options)).eval()
    if own_output:
        model.lm_head.weight = torch.nn.Parameter(torch.zeros_like(model.shared.weight))
    randomize(model, generator)
    # multihead never says the token that the decoder starts with, either.
    model.generation_config.bad_words_ids = [[PAD]] + [[start] for start in [model.config.decoder_start_token_id] if start != PAD]
    folder = root / name
    shutil.rmtree(folder, ignore_errors=True)
    model.to(stored).save_pretrained(folder)
    if name == "t5/flan_bf16":
        as_older_versions_save(folder / "config.json")
    model = model_class.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()
    model.generation_config.use_cache = False  # whose layers transformers counts in the encoder
    return model, generator


def make(name, root, seed):
    options, _, own_output, penalty, _ = MODELS[name]
    model, generator = make_model(name, root, seed)
    assert own_output != torch.equal(model.lm_head.weight, model.shared.weight)
    draw = lambda length: torch.randint(2, options["vocab_size"], (length,), generator=generator).tolist() + [EOS]
    sources, targets = [draw(n) for n in (6, 1, 37, 4)], [draw(n) for n in (4, 9, 26, 7)]
    out = {}
    with torch.no_grad():
        read(model, sources, targets, model.config.decoder_start_token_id, out)
        search(model, sources, penalty, out)
        if name == "t5/text":
            out |= make_texts(name, root, model)
    lengths = out["beam_1_lengths"], out["beam_5_lengths"]
    assert max(lengths[0]) > 4 and len(set(lengths[1])) > 4, f"short: {lengths}"
    out["length_penalty"] = np.array([penalty], dtype=np.float32)
    save_file(out, root / f"{name}.golden.safetensors")
    print(f"{name}: logits {out['logits'].std():.2f} std, lengths {lengths}")


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1] / "goldens"
    for name in sys.argv[2:] or MODELS:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        make(name, root, MODELS[name][-1])


if __name__ == "__main__":
    main()
