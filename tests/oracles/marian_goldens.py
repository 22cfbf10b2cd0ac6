"""Makes tests/goldens/marian: tiny random models as MarianMTModel.save_pretrained writes them, and what
transformers computes with them (in double precision): logits, greedy translations, and for one of them the
loss and all gradients.

    python -m venv venv && venv/bin/pip install torch transformers safetensors numpy
    venv/bin/python tests/oracles/marian_goldens.py [FOLDER]
"""

import os
import pathlib
import shutil
import sys

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import MarianConfig, MarianMTModel

PAD, EOS, UNK = 2, 0, 1
NEW_TOKENS = 11
SMOOTHING = 0.1
END_BIAS = 2.5  # some greedy translations end by themselves, others at the limit

# Odd and unequal on purpose: d_model 21 with heads of 7 and 3; 27 positions; separate vocabularies.
MODELS = {
    "relu": dict(
        vocab_size=61,
        d_model=24,
        encoder_layers=2,
        decoder_layers=1,
        encoder_attention_heads=3,
        decoder_attention_heads=4,
        encoder_ffn_dim=31,
        decoder_ffn_dim=53,
        activation_function="relu",
        scale_embedding=True,
    ),
    "gelu_f16": dict(
        vocab_size=53,
        d_model=21,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=3,
        decoder_attention_heads=7,
        encoder_ffn_dim=19,
        decoder_ffn_dim=37,
        activation_function="gelu",
        scale_embedding=False,
    ),
    "swish_bf16_separate": dict(
        vocab_size=43,
        decoder_vocab_size=59,
        d_model=24,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=2,
        encoder_ffn_dim=29,
        decoder_ffn_dim=17,
        activation_function="swish",
        scale_embedding=True,
        share_encoder_decoder_embeddings=False,
    ),
    "silu_untied": dict(
        vocab_size=37,
        decoder_vocab_size=41,
        d_model=14,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=1,
        decoder_attention_heads=2,
        encoder_ffn_dim=11,
        decoder_ffn_dim=13,
        activation_function="silu",
        scale_embedding=False,
        share_encoder_decoder_embeddings=False,
        tie_word_embeddings=False,
    ),
    "gradients": dict(
        vocab_size=31,
        d_model=12,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=3,
        decoder_attention_heads=4,
        encoder_ffn_dim=7,
        decoder_ffn_dim=11,
        activation_function="gelu",
        scale_embedding=True,
    ),
}
# Chosen so that greedy translations vary and end at different lengths.
SEEDS = {"relu": 5, "gelu_f16": 17, "swish_bf16_separate": 8, "silu_untied": 22, "gradients": 15}
STORED = {"gelu_f16": torch.float16, "swish_bf16_separate": torch.bfloat16}


def randomize(model, generator):
    """Weights that make attention sharp and every parameter matter (the default start is nearly uniform)."""
    with torch.no_grad():
        for name, parameter in model.state_dict().items():
            if "embed_positions" in name:
                continue
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            if "layer_norm.weight" in name:
                value = 0.3 + 1.5 * noise  # of both signs, lest the last token be the likeliest next one
            elif name.endswith("bias"):
                value = 0.3 * noise
            elif "shared" in name or "embed_tokens" in name or "lm_head" in name:
                value = 0.2 * noise
            else:
                value = 1.3 * noise / parameter.shape[1] ** 0.5
            parameter.copy_(value.to(parameter.dtype))
        model.final_logits_bias[0, EOS] += END_BIAS


def padded(lists):
    longest = max(map(len, lists))
    ids = torch.full((len(lists), longest), PAD)
    for row, items in enumerate(lists):
        ids[row, : len(items)] = torch.tensor(items)
    return ids, (torch.arange(longest)[None] < torch.tensor([len(x) for x in lists])[:, None]).long()


def flat(name, lists, out):
    out[name] = np.array([i for items in lists for i in items], dtype=np.int64)
    out[name + "_lengths"] = np.array([len(items) for items in lists], dtype=np.int64)


def make(name, settings, folder, seed):
    generator = torch.Generator().manual_seed(seed)
    config = MarianConfig(
        **settings,
        pad_token_id=PAD,
        eos_token_id=EOS,
        decoder_start_token_id=PAD,
        forced_eos_token_id=EOS,
        max_position_embeddings=27,
        dropout=0.3,
        attention_dropout=0.1,
        activation_dropout=0.2,
        attn_implementation="eager",
    )
    model = MarianMTModel(config).eval()
    randomize(model, generator)
    model.generation_config.bad_words_ids = [[PAD]]
    model = model.to(STORED.get(name, torch.float32))  # rounded before anything is computed
    shutil.rmtree(folder / name, ignore_errors=True)
    model.save_pretrained(folder / name)
    model = MarianMTModel.from_pretrained(
        folder / name, dtype=torch.float64, attn_implementation="eager"
    ).eval()
    out = {}

    def sentence(vocabulary, length):
        return torch.randint(3, vocabulary, (length,), generator=generator).tolist() + [EOS]

    target_vocabulary = model.lm_head.weight.shape[0]
    sources = [sentence(settings["vocab_size"], n) for n in (6, 1, 12, 4)]
    targets = [sentence(target_vocabulary, n) for n in (4, 9, 2, 7)]
    inputs = [[PAD] + target[:-1] for target in targets]
    flat("source", sources, out)
    flat("target_in", inputs, out)
    flat("target_out", targets, out)

    logits = []
    with torch.no_grad():
        for source, target in zip(sources, inputs):
            logits.append(
                model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target])).logits[0]
            )
        ids, mask = padded(sources)
        steps = []
        greedy = model.generate(
            input_ids=ids,
            attention_mask=mask,
            num_beams=1,
            do_sample=False,
            max_new_tokens=NEW_TOKENS,
            return_dict_in_generate=True,
            output_scores=True,
        )
    out["logits"] = torch.cat(logits).float().numpy()
    answers = []
    for row in greedy.sequences[:, 1:].tolist():
        answers.append(row[: row.index(EOS) + 1] if EOS in row else row)
    for step, scores in enumerate(greedy.scores):
        best = scores.topk(2, dim=-1).values
        for row, answer in enumerate(answers):
            if step < len(answer) and not torch.isinf(best[row, 1]):
                steps.append((best[row, 0] - best[row, 1]).item())
    flat("greedy", answers, out)
    print(
        f"{name}: logits {out['logits'].std():.2f} std, greedy {[len(a) for a in answers]}, "
        f"smallest lead {min(steps):.4f}"
    )
    assert min(steps) > 1e-3, "two tokens nearly equal: take another seed"

    if name == "gradients":
        for module in (
            model.model.shared,
            model.model.encoder.embed_tokens,
            model.model.decoder.embed_tokens,
        ):
            module.padding_idx = None  # torch drops that row's gradient, though the decoder starts with it
        total = 0
        scale = 1 / 7
        for source, target_in, target in zip(sources, inputs, targets):
            row = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target_in])).logits[
                0
            ]
            total = total + torch.nn.functional.cross_entropy(
                row, torch.tensor(target), reduction="sum", label_smoothing=SMOOTHING
            )
        (total * scale).backward()
        out["smoothed_loss"] = np.array([total.item()], dtype=np.float32)
        for key, parameter in model.named_parameters():
            if parameter.grad is not None and "embed_positions" not in key:
                out["gradient." + key] = parameter.grad.float().numpy()
    save_file(out, folder / f"{name}.golden.safetensors")
    print(
        f"  {sum(p.stat().st_size for p in (folder / name).iterdir())} bytes, golden "
        f"{os.path.getsize(folder / f'{name}.golden.safetensors')} bytes"
    )


def main():
    root = pathlib.Path(__file__).resolve().parents[1]
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "goldens" / "marian"
    folder.mkdir(parents=True, exist_ok=True)
    for name, settings in MODELS.items():
        make(name, settings, folder, SEEDS[name])


if __name__ == "__main__":
    main()
