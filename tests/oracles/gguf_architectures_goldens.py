"""Makes tests/goldens/gguf_architectures: for each architecture besides llama a tiny model of Hugging Face's class as a GGUF file,
written as llama.cpp's converter does it, and the states and logits of the model with the numbers that the file holds.

    python -m venv venv && venv/bin/pip install gguf tokenizers sentencepiece torch transformers safetensors numpy
    venv/bin/python tests/oracles/gguf_architectures_goldens.py [FOLDER]
    venv/bin/python tests/oracles/gguf_architectures_goldens.py --folder DIR NAME    checks a folder that `multihead convert` made
        of a golden
"""

import math
import pathlib
import sys

import gguf
import numpy as np
import torch
import transformers
from gguf import MODEL_ARCH as ARCH
from gguf import GGMLQuantizationType as Type
from gguf_goldens import finish, numbers_of, quantised, small_tokenizer, write_byte_level
from gguf_types_goldens import random_rows, with_halves
from safetensors.numpy import load_file, save_file

HERE = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "gguf_architectures"
SMALL = (Type.F32, Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1)  # the package quantises them
K_QUANTS = (Type.Q8_0, Type.Q4_0, Type.IQ4_NL, Type.MXFP4, Type.Q2_K, Type.Q3_K, Type.Q4_K, Type.Q5_K, Type.Q6_K, Type.IQ4_XS)
WORDS = {ARCH.QWEN2: "qwen2", ARCH.QWEN3: "qwen2", ARCH.OLMO2: "dbrx", ARCH.GPTNEOX: "olmo", ARCH.PHI3: "gpt-4o"}


def random_blocks(random, kind, shape):
    """Blocks of a type that the package does not quantise, of numbers of about 0.2."""
    blocks = random_rows(random, kind, *shape).reshape(-1, gguf.GGML_QUANT_SIZES[kind][1])
    if kind == Type.MXFP4:
        blocks[:, 0] = 123
        return blocks.reshape(shape[0], -1)
    ones = gguf.quants.dequantize(with_halves(blocks, kind, np.ones((len(blocks), 2))), kind)
    return with_halves(blocks, kind, np.full((len(blocks), 2), 0.2 / ones.std())).reshape(shape[0], -1)


def stored_as(random, numbers, kinds, number):
    """Of the kinds those with the largest blocks that fit, in turns."""
    kind = Type.F32
    if numbers.ndim == 2:
        fitting = [kind for kind in kinds if numbers.shape[-1] % gguf.GGML_QUANT_SIZES[kind][0] == 0]
        largest = max(gguf.GGML_QUANT_SIZES[kind][0] for kind in fitting)
        fitting = [kind for kind in fitting if gguf.GGML_QUANT_SIZES[kind][0] == largest]
        kind = fitting[number % len(fitting)]
    if kind in SMALL:
        return quantised(numbers, kind), kind
    return random_blocks(random, kind, numbers.shape), kind


def add_shape(writer, config):
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_vocab_size(config.vocab_size)


def add_rms(writer, config):
    add_shape(writer, config)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)


def add_heads(writer, config):
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)


def write_qwen(writer, config):
    add_rms(writer, config)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    if config.model_type == "qwen3":
        add_heads(writer, config)


def write_olmo2(writer, config):
    add_rms(writer, config)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])


def write_gemma2(writer, config):
    add_rms(writer, config)
    add_heads(writer, config)
    writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
    writer.add_final_logit_softcapping(config.final_logit_softcapping)
    writer.add_sliding_window(config.sliding_window)


def write_gemma3(writer, config):
    add_rms(writer, config)
    add_heads(writer, config)
    full = config.rope_parameters["full_attention"]
    writer.add_rope_freq_base(full["rope_theta"])
    if full["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(full["factor"])
    writer.add_sliding_window(config.sliding_window)


def write_phi3(writer, config):
    add_rms(writer, config)
    rope = config.rope_parameters
    size = config.hidden_size // config.num_attention_heads
    original = config.original_max_position_embeddings
    writer.add_rope_scaling_orig_ctx_len(original)
    writer.add_rope_dimension_count(int(rope["partial_rotary_factor"] * size))
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_sliding_window(config.sliding_window or 0)
    if rope["rope_type"] == "longrope":
        scale = config.max_position_embeddings / original
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(scale) / math.log(original)))
        for kind in ("long", "short"):
            writer.add_tensor(f"rope_factors_{kind}.weight", np.array(rope[f"{kind}_factor"], dtype=np.float32))


def write_neox(writer, config):
    add_shape(writer, config)
    share = config.rope_parameters["partial_rotary_factor"]
    writer.add_rope_dimension_count(int(share * (config.hidden_size // config.num_attention_heads)))
    writer.add_parallel_residual(config.use_parallel_residual)
    writer.add_layer_norm_eps(config.layer_norm_eps)


def by_part(numbers, heads):
    """[heads, 3, size] becomes [3, heads, size]."""
    return numbers.reshape(heads, 3, -1, *numbers.shape[1:]).swapaxes(0, 1).reshape(numbers.shape)


def by_head(numbers, heads):
    return numbers.reshape(3, heads, -1, *numbers.shape[1:]).swapaxes(0, 1).reshape(numbers.shape)


def make(folder, name, arch, class_name, write, kinds, layers=2, longest=23, **fields):
    torch.manual_seed(11)
    random = np.random.default_rng(13)
    tokenizer = small_tokenizer()
    model_class = getattr(transformers, class_name)
    common = dict(vocab_size=tokenizer.get_vocab_size(), num_hidden_layers=layers, max_position_embeddings=131, bos_token_id=1,
                  eos_token_id=2, pad_token_id=2, attn_implementation="eager", hidden_size=32, num_attention_heads=4)
    config = model_class.config_class(**(common | fields))
    model = model_class(config).eval()
    writer = gguf.GGUFWriter(folder / f"{name}.gguf", gguf.MODEL_ARCH_NAMES[arch])
    write(writer, config)
    write_byte_level(writer, tokenizer, WORDS.get(arch, "smollm"))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(False)
    names = gguf.get_tensor_name_map(arch, layers)
    plus_one = arch in (ARCH.GEMMA2, ARCH.GEMMA3)
    with torch.no_grad():
        for number, (key, parameter) in enumerate(model.named_parameters()):
            parameter.add_(0.2 * torch.randn_like(parameter))
            numbers = parameter.numpy().copy()
            is_norm, is_fused = plus_one and key.endswith("norm.weight"), "query_key_value" in key
            if is_norm:
                numbers = numbers + np.float32(1)
            if is_fused:
                numbers = by_part(numbers, config.num_attention_heads)
            stored, kind = stored_as(random, numbers, kinds, number)
            writer.add_tensor(names.get_name(key, (".weight", ".bias")), stored, raw_dtype=kind)
            numbers = gguf.quants.dequantize(stored, kind).astype(np.float32).reshape(numbers.shape)
            if is_norm:
                numbers = numbers - np.float32(1)
            if is_fused:
                numbers = by_head(numbers, config.num_attention_heads)
            parameter.copy_(torch.tensor(numbers))
    finish(writer)
    save_file(numbers_of(model.double(), [1, 2, longest, 7]), folder / f"{name}.golden.safetensors")


def check_folder(folder, name):
    """The logits of a folder that was made of a golden are the golden's."""
    golden = load_file(HERE / f"{name}.golden.safetensors")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()
    ends = golden["lengths"].cumsum()
    with torch.no_grad():
        logits = [model(torch.tensor(golden["ids"][end - n : end])[None]).logits[0].numpy()
                  for end, n in zip(ends, golden["lengths"], strict=True)]
    difference = np.abs(np.concatenate(logits) - golden["logits"]).max() / np.abs(golden["logits"]).max()
    assert difference < 1e-6, difference


def rope(base, **more):
    return dict(rope_type="default", rope_theta=base) | more


def main():
    if sys.argv[1:2] == ["--folder"]:
        check_folder(*sys.argv[2:])
        return
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    folder.mkdir(parents=True, exist_ok=True)
    grouped = dict(num_key_value_heads=2, intermediate_size=64)
    make(folder, "qwen2", ARCH.QWEN2, "Qwen2ForCausalLM", write_qwen, [Type.Q5_0, Type.Q8_0, Type.Q5_1], **grouped,
         rope_parameters=rope(1e6), tie_word_embeddings=False)
    make(folder, "qwen3", ARCH.QWEN3, "Qwen3ForCausalLM", write_qwen, K_QUANTS, layers=6, **grouped | dict(intermediate_size=256),
         head_dim=16, rope_parameters=rope(1e6), tie_word_embeddings=True)
    make(folder, "olmo2", ARCH.OLMO2, "Olmo2ForCausalLM", write_olmo2, [Type.Q8_0], **grouped, rope_parameters=rope(5e5))
    gemma = grouped | dict(head_dim=16, query_pre_attn_scalar=16, sliding_window=4)
    make(folder, "gemma2", ARCH.GEMMA2, "Gemma2ForCausalLM", write_gemma2, [Type.Q8_0], layers=3, **gemma,
         attn_logit_softcapping=2.0, final_logit_softcapping=3.0)
    make(folder, "gemma3", ARCH.GEMMA3, "Gemma3ForCausalLM", write_gemma3, [Type.Q8_0], layers=7, **gemma,
         rope_parameters=dict(full_attention=rope(1e6, rope_type="linear", factor=8.0), sliding_attention=rope(1e4)))
    make(folder, "phi3", ARCH.PHI3, "Phi3ForCausalLM", write_phi3, [Type.Q8_0], **grouped, sliding_window=5,
         rope_parameters=rope(1e4, partial_rotary_factor=0.5), original_max_position_embeddings=131)
    factors = dict(short_factor=[1.0, 1.0, 1.05, 1.25], long_factor=[1.1, 1.5, 2.5, 8.0])
    make(folder, "phi3_long", ARCH.PHI3, "Phi3ForCausalLM", write_phi3, [Type.Q8_0], longest=16, **grouped,
         original_max_position_embeddings=16, rope_parameters=rope(1e4, rope_type="longrope", **factors))
    for name, parallel in (("gptneox", True), ("gptneox_serial", False)):
        make(folder, name, ARCH.GPTNEOX, "GPTNeoXForCausalLM", write_neox, [Type.Q8_0], intermediate_size=64,
             use_parallel_residual=parallel, rope_parameters=rope(1e4, partial_rotary_factor=0.5))


if __name__ == "__main__":
    main()
