"""Makes tests/goldens/bart, mbart and m2m_100: tiny random models as save_pretrained writes them, and what transformers computes with them
in double precision: states of the encoder, logits, and translations with beams of 1 to 5 hypotheses and their scores. The folder
bart/text has a tokenizer, too, and its golden the ids of texts and their translations.

  scripts/python torch transformers tokenizers safetensors numpy && .venv/bin/python tests/oracles/translator_goldens.py [FOLDER]
"""

import json
import pathlib
import shutil
import sys

import numpy as np
import torch
from safetensors.numpy import save_file
from safetensors.torch import load_file
from safetensors.torch import save_file as save_torch_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoTokenizer,
    BartConfig,
    BartForConditionalGeneration,
    M2M100Config,
    M2M100ForConditionalGeneration,
    MBartConfig,
    MBartForConditionalGeneration,
    RobertaTokenizer,
)

BOS, PAD, EOS = 0, 1, 2
NEW_TOKENS = 24
CLASSES = {
    "bart": (BartConfig, BartForConditionalGeneration),
    "mbart": (MBartConfig, MBartForConditionalGeneration),
    "m2m_100": (M2M100Config, M2M100ForConditionalGeneration),
}
FIRST = dict(
    vocab_size=61,
    d_model=24,
    encoder_layers=2,
    decoder_layers=3,
    encoder_attention_heads=3,
    decoder_attention_heads=4,
    encoder_ffn_dim=31,
    decoder_ffn_dim=53,
)
SECOND = dict(
    vocab_size=53,
    d_model=21,
    encoder_layers=3,
    decoder_layers=1,
    encoder_attention_heads=7,
    decoder_attention_heads=3,
    encoder_ffn_dim=19,
    decoder_ffn_dim=37,
)
THIRD = dict(
    vocab_size=41,
    d_model=14,
    encoder_layers=1,
    decoder_layers=2,
    encoder_attention_heads=2,
    decoder_attention_heads=7,
    encoder_ffn_dim=13,
    decoder_ffn_dim=11,
)
# Family/name: sizes and options; how it is stored; the length penalty of its beams; the seed, so that beams differ.
MODELS = {
    "bart/plain": (FIRST | dict(forced_bos_token_id=BOS), torch.float32, 1.0, 313),
    "bart/scaled_bf16": (SECOND | dict(activation_function="relu", scale_embedding=True), torch.bfloat16, 0.0, 36),
    "bart/untied_f16": (
        THIRD | dict(activation_function="silu", tie_word_embeddings=False, forced_bos_token_id=5), torch.float16, 2.0, 33),
    "bart/alone": (THIRD | dict(activation_function="gelu_new", decoder_start_token_id=7), torch.float32, 0.7, 12),
    "bart/text": (THIRD | dict(vocab_size=293, forced_bos_token_id=BOS), torch.float32, 1.0, 153),
    "mbart/plain": (FIRST | dict(decoder_start_token_id=9), torch.float32, 1.0, 15),
    "mbart/scaled_bf16": (
        SECOND | dict(scale_embedding=True, decoder_start_token_id=EOS, forced_bos_token_id=6), torch.bfloat16, 0.5, 19),
    "mbart/untied": (
        THIRD | dict(activation_function="relu", tie_word_embeddings=False), torch.float32, 1.0, 19),
    "m2m_100/plain": (FIRST | dict(forced_bos_token_id=7), torch.float32, 1.0, 7),
    "m2m_100/odd_bf16": (
        SECOND | dict(activation_function="gelu", scale_embedding=False, forced_bos_token_id=6), torch.bfloat16, 0.5, 1),
    "m2m_100/untied": (THIRD | dict(tie_word_embeddings=False), torch.float32, 1.0, 31),
}
TEXTS = ["the small dog sees a cat.", "two dogs run in the park", "Naïve 漢字  is <s> odd", "a"]


def end_soon(model):
    """Makes the end likelier without a bias of the logits: the decoder's last norm leans towards the end's row of the table."""
    with torch.no_grad():
        row = model.lm_head.weight[EOS]
        model.model.decoder.layer_norm.bias += 3 * row / row.norm()


def randomize(model, generator):
    """Weights that make attention sharp and every parameter matter."""
    tied = model.config.tie_word_embeddings
    with torch.no_grad():
        for name, parameter in model.state_dict().items():
            if tied and name in ("lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"):
                continue
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            if "norm" in name and name.endswith("weight"):
                value = 0.3 + 1.5 * noise  # of both signs, lest the last token be the likeliest next one
            elif name.endswith("bias"):
                value = 0.3 * noise
            elif "shared" in name or "embed" in name or "lm_head" in name:
                value = 0.3 * noise
            else:
                value = 1.3 * noise / parameter.shape[1] ** 0.5
            parameter.copy_(value.to(parameter.dtype))
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias[0, EOS] += 3.0
        else:
            end_soon(model)


def make_tokenizer(folder, vocabulary):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(TEXTS * 3 + ["the dog runs, and the cats see the dogs in the park."] * 9, trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    learned = json.loads(t.to_str())["model"]
    made = RobertaTokenizer(vocab=learned["vocab"], merges=[tuple(m) for m in learned["merges"]])
    made.save_pretrained(folder)
    found = AutoTokenizer.from_pretrained(folder)
    assert len(found) == vocabulary, (len(found), vocabulary)
    return found


def save_alone(folder):
    """As BartModel saves it: names without "model.", and nothing that makes words."""
    tensors = load_file(folder / "model.safetensors")
    assert "lm_head.weight" not in tensors
    alone = {name.removeprefix("model."): tensor for name, tensor in tensors.items() if name != "final_logits_bias"}
    save_torch_file(alone, folder / "model.safetensors", metadata={"format": "pt"})


def flat(name, lists, out):
    out[name] = np.array([i for items in lists for i in items], dtype=np.int64)
    out[name + "_lengths"] = np.array([len(items) for items in lists], dtype=np.int64)


def read(model, sources, targets, start, out):
    """What the model makes of sources, and of targets behind the start token: states of the encoder, and logits."""
    inputs = [[start] + target[:-1] for target in targets]
    flat("source", sources, out)
    flat("target_in", inputs, out)
    flat("target_out", targets, out)
    logits, memory = [], []
    for source, target in zip(sources, inputs):
        answer = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target]))
        logits.append(answer.logits[0])
        memory.append(answer.encoder_last_hidden_state[0])
    out["logits"], out["memory"] = torch.cat(logits).float().numpy(), torch.cat(memory).float().numpy()


def without_start(sequence, end):
    """Without the start token and what stands behind the end."""
    ids = sequence[1:].tolist()
    return ids[: ids.index(end)] if end in ids else ids


def search(model, sources, penalty, out):
    """Translations with beams, best first."""
    for beams in range(1, 6):
        found, scores = [], []
        for source in sources:
            more = {} if beams == 1 else dict(early_stopping=True, length_penalty=penalty, num_return_sequences=beams)
            answer = model.generate(
                input_ids=torch.tensor([source]), num_beams=beams, do_sample=False, max_new_tokens=NEW_TOKENS,
                return_dict_in_generate=True, output_scores=True, **more)
            found += [without_start(sequence, model.config.eos_token_id) for sequence in answer.sequences]
            assert all(len(ids) < NEW_TOKENS - 1 for ids in found), f"beam {beams}: {list(map(len, found))}; take another seed"
            if beams > 1:
                scores += answer.sequences_scores.tolist()
        flat(f"beam_{beams}", found, out)
        if beams > 1:
            out[f"scores_{beams}"] = np.array(scores, dtype=np.float32)


def make(name, root):
    sizes, stored, penalty, seed = MODELS[name]
    family = name.split("/")[0]
    config_class, model_class = CLASSES[family]
    generator = torch.Generator().manual_seed(seed)
    config = config_class(**sizes, max_position_embeddings=29, dropout=0.3, attention_dropout=0.1, activation_dropout=0.2,
                          encoder_layerdrop=0.25, decoder_layerdrop=0.5)
    torch.manual_seed(seed)
    model = model_class(config).eval()
    randomize(model, generator)
    if name == "bart/alone":
        model.final_logits_bias.zero_()
    model.generation_config.bad_words_ids = [[PAD]]
    model.generation_config.forced_bos_token_id = sizes.get("forced_bos_token_id")
    model = model.to(stored)
    folder = root / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    if name == "bart/alone":
        save_alone(folder)
    out = {}
    if name == "bart/text":
        tokenizer = make_tokenizer(folder, sizes["vocab_size"])
    model = model_class.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()
    start = config.decoder_start_token_id if config.decoder_start_token_id is not None else BOS
    draw = lambda length: torch.randint(3, sizes["vocab_size"], (length,), generator=generator).tolist() + [EOS]
    sources, targets = [draw(n) for n in (6, 1, 12, 4)], [draw(n) for n in (4, 9, 2, 7)]
    with torch.no_grad():
        read(model, sources, targets, start, out)
        if family == "m2m_100":  # padding tokens in a text have no place
            padded = [[PAD, 17, 5, PAD, PAD, 9, EOS], [3, 4, PAD, EOS]]
            flat("padded", padded, out)
            encoded = [model.model.encoder(input_ids=torch.tensor([ids])).last_hidden_state[0] for ids in padded]
            out["padded_memory"] = torch.cat(encoded).float().numpy()
        search(model, sources, penalty, out)
        if name == "bart/text":
            ids = [tokenizer(text)["input_ids"] for text in TEXTS]
            flat("text_ids", ids, out)
            said = []
            for text in ids:
                best = model.generate(input_ids=torch.tensor([text]), num_beams=5, early_stopping=True, max_new_tokens=NEW_TOKENS)[0]
                assert len(best) < NEW_TOKENS, "a text that is cut off: take another seed"
                said.append(tokenizer.decode(best, skip_special_tokens=True))
            (root / family / "text.texts.json").write_text(
                json.dumps([{"text": t, "translation": s} for t, s in zip(TEXTS, said)], indent=1) + "\n")
    out["length_penalty"] = np.array([penalty], dtype=np.float32)
    save_file(out, root / f"{name}.golden.safetensors")
    print(f"{name}: logits {out['logits'].std():.2f} std, lengths {out['beam_1_lengths']} {out['beam_5_lengths']}, "
          f"{sum(p.stat().st_size for p in folder.iterdir())} bytes")


def main():
    root = pathlib.Path(__file__).resolve().parents[1] / "goldens"
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root
    for name in MODELS:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        make(name, root)


if __name__ == "__main__":
    main()
