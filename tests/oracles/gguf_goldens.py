"""Makes tests/goldens/gguf, but for what gguf_types_goldens.py makes: tiny Llamas as GGUF files with the logits of the models
that they were made from; and tests/goldens/gguf_sentencepiece: one with a tokenizer that the sentencepiece library trained, and
its answers.

    python -m venv venv && venv/bin/pip install gguf tokenizers sentencepiece torch transformers safetensors numpy
    venv/bin/python tests/oracles/gguf_goldens.py [FOLDER]
    venv/bin/python tests/oracles/gguf_goldens.py --folder DIR FILE.gguf      checks a folder that `multihead convert` made
    venv/bin/python tests/oracles/gguf_goldens.py --sentencepiece DIR TEXTS   makes a GGUF file with a tokenizer that learned
        from the texts, and the library's answers about them
    venv/bin/python tests/oracles/gguf_goldens.py --smollm2 FILE.gguf OUT     makes tests/goldens/smollm2, what transformers
        and tokenizers compute with the file that scripts/models fetches
"""

import json
import pathlib
import sys

import gguf
import numpy as np
import sentencepiece
import tokenizers
import torch
from gguf import GGMLQuantizationType as Type
from safetensors.numpy import save_file
from sentencepiece_goldens import answer, train
from torture_goldens import HERE as TORTURE, SMALL
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

TEXTS = [
    "The year 2024 had 366 days.",
    "don't you're we'll I'd  two spaces\n\n\tand a tab ",
    "<|im_start|>user\nHow many?<|im_end|>\n<|im_start|>assistant\n",
    "café, naïve, Ångström; 東京 и Москва ½ ² ٣",
    "",
    "x" * 127,
]


def quantised(numbers, kind):
    if kind == Type.F32:
        return numbers.astype(np.float32)
    return gguf.quants.quantize(numbers.astype(np.float32), kind)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# As llama.cpp's conversion does it: pairs of rotary positions become neighbours.
def permuted(rows, heads):
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(rows.shape)


NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name):
    stem, kind = name.rsplit(".", 1)
    if stem.startswith("model.layers."):
        _, _, layer, rest = stem.split(".", 3)
        return f"blk.{layer}.{NAMES[rest]}.{kind}"
    return f"{NAMES[stem]}.{kind}"


def small_tokenizer():
    """Byte-level BPE with digits by themselves, as SmolLM2's, learned from the texts above."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Digits(individual_digits=True),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=283,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    made.train_from_iterator(TEXTS * 3, trainer)
    return made


def write_byte_level(writer, tokenizer, words="smollm"):
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    state = json.loads(tokenizer.to_str())
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(words)
    writer.add_token_list([token for token, _ in vocabulary])
    writer.add_token_types([3 if token.startswith("<|") else 1 for token, _ in vocabulary])
    writer.add_token_merges([" ".join(merge) for merge in state["model"]["merges"]])


def write_sentencepiece(writer, model):
    """As llama.cpp's conversion does it (SentencePieceProcessor's tests of a piece's type)."""
    pieces = range(model.get_piece_size())
    kinds = [(model.is_unknown, 2), (model.is_control, 3), (model.is_unused, 5), (model.is_byte, 6)]
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([model.id_to_piece(i) for i in pieces])
    writer.add_token_scores([model.get_score(i) for i in pieces])
    writer.add_token_types([next((kind for test, kind in kinds if test(i)), 1) for i in pieces])


def make_llama(folder, name, kinds, add_bos, pieces=None, lengths=(1, 2, 23, 17), layers=2, **more):
    """kinds: the types of the matrices, in turns. pieces: a SentencePieceProcessor; None: small_tokenizer().
    more: fields of LlamaConfig."""
    torch.manual_seed(11)
    tokenizer = small_tokenizer()
    encode = pieces.encode if pieces else lambda text: tokenizer.encode(text).ids
    config = LlamaConfig(
        vocab_size=pieces.get_piece_size() if pieces else tokenizer.get_vocab_size(),
        num_hidden_layers=layers,
        max_position_embeddings=131,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
        attn_implementation="eager",
        **more,
    )
    model = LlamaForCausalLM(config).eval()
    writer = gguf.GGUFWriter(folder / f"{name}.gguf", "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_rope_dimension_count(config.head_dim)
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "llama3":
        plain = rope["rope_theta"] ** (-np.arange(0, config.head_dim, 2) / config.head_dim)
        scaled = model.model.rotary_emb.inv_freq.numpy()
        writer.add_tensor("rope_freqs.weight", (plain / scaled).astype(np.float32))
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if pieces:
        write_sentencepiece(writer, pieces)
    else:
        write_byte_level(writer, tokenizer)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_add_bos_token(add_bos)
    writer.add_chat_template("{{ messages }}")
    with torch.no_grad():
        for number, (key, parameter) in enumerate(model.named_parameters()):
            parameter.add_(0.2 * torch.randn_like(parameter))
            kind = kinds[number % len(kinds)] if parameter.dim() == 2 else Type.F32
            numbers = parameter.numpy()
            for part, heads in (("q_proj", config.num_attention_heads), ("k_proj", config.num_key_value_heads)):
                if part in key:
                    numbers = permuted(numbers, heads)
            stored = quantised(numbers, kind)
            writer.add_tensor(gguf_name(key), stored, raw_dtype=kind)
            numbers = gguf.quants.dequantize(stored, kind).astype(np.float32).reshape(numbers.shape)
            for part, heads in (("q_proj", config.num_attention_heads), ("k_proj", config.num_key_value_heads)):
                if part in key:  # put back
                    size = numbers.shape[0] // heads
                    numbers = numbers.reshape(heads, size // 2, 2, -1).swapaxes(1, 2).reshape(numbers.shape)
            parameter.copy_(torch.tensor(numbers))
    finish(writer)
    tensors = numbers_of(model.double(), list(lengths))
    for i, text in enumerate(TEXTS):
        ids = ([1] if add_bos else []) + encode(text)
        tensors[f"text.{i}"] = np.array(ids, dtype=np.int64)
    save_file(tensors, folder / f"{name}.golden.safetensors")


def make_sentencepiece(folder, lines, texts, vocab_size):
    """A model shaped like Llama 2's (nothing is normalised, digits stand alone, unknown characters become bytes), learned
    from the lines, in a small Llama, and its answers about the texts."""
    folder.mkdir(exist_ok=True)
    data = train(lines, model_type="bpe", vocab_size=vocab_size, byte_fallback=True, split_digits=True,
                 normalization_rule_name="identity", remove_extra_whitespaces=False)
    model = sentencepiece.SentencePieceProcessor(model_proto=data)
    make_llama(
        folder,
        "llama",
        [Type.F32],
        add_bos=True,
        pieces=model,
        lengths=(1, 2, 7, 5),
        layers=1,
        hidden_size=6,
        intermediate_size=5,
        num_attention_heads=3,
        num_key_value_heads=1,
        head_dim=2,
        tie_word_embeddings=True,
    )
    answers = [answer(model, text) for text in texts]
    (folder / "answers.json").write_text("[" + ",\n".join(json.dumps(a, separators=(",", ":")) for a in answers) + "]\n")


def numbers_of(model, lengths):
    """Random ids of these lengths, the model's last states and its logits, the sequences end to end."""
    random = np.random.default_rng(7)
    ids = [random.integers(0, model.config.vocab_size, n) for n in lengths]
    states, logits = [], []
    for sequence in ids:
        with torch.no_grad():
            out = model(torch.tensor(sequence)[None], output_hidden_states=True)
        states.append(out.hidden_states[-1][0].float().numpy())
        logits.append(out.logits[0].float().numpy())
    return {
        "lengths": np.array(lengths, dtype=np.int64),
        "ids": np.concatenate(ids).astype(np.int64),
        "states": np.concatenate(states),
        "logits": np.concatenate(logits),
    }


def open_gguf(path):
    path = pathlib.Path(path)
    return AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32, attn_implementation="eager"
    ).eval()


def tokenizer_of(path):
    """The tokenizer of a GGUF file with the words of SmolLM2, which transformers does not know."""
    fields = gguf.GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]
    made = tokenizers.Tokenizer(tokenizers.models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    made.pre_tokenizer = small_tokenizer().pre_tokenizer
    made.add_special_tokens([token for token, kind in zip(tokens, types) if kind == 3])
    return made


def smollm2(path, out):
    """What the tests of the real model compare with: the states and logits behind the last two tokens of texts of four
    lengths, of the logits every 61st and the greatest magnitude; and the ids of the texts."""
    tensors = {}
    model = open_gguf(path)
    for length in (1, 2, 127, 2048):
        found = numbers_of(model, [length])
        tensors[f"{length}.ids"] = found["ids"].astype(np.int32)
        tensors[f"{length}.states"] = found["states"][-2:].copy()
        tensors[f"{length}.logits"] = found["logits"][-2:, ::61].copy()
        for kind in ("states", "logits"):
            tensors[f"{length}.greatest_{kind}"] = np.abs(found[kind]).max(keepdims=True)[0]
    made = tokenizer_of(path)
    for i, text in enumerate(TEXTS):
        tensors[f"text.{i}"] = np.array(made.encode(text).ids, dtype=np.int64)
    save_file(tensors, out)


def check_folder(folder, path):
    """Opens a converted folder with transformers: its logits are those of the file, its ids those of the texts."""
    path = pathlib.Path(path)
    with torch.no_grad():
        ids = torch.arange(2, 99)[None] * 7 % 283
        theirs = open_gguf(path)(ids).logits
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
        ours = model(ids).logits
    difference = (theirs - ours).abs().max() / theirs.abs().max()
    assert difference < 1e-6, difference
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.bos_token_id == model.config.bos_token_id
    assert tokenizer.chat_template == gguf.GGUFReader(path).fields["tokenizer.chat_template"].contents()
    assert tokenizer.eos_token_id == model.config.eos_token_id == model.generation_config.eos_token_id == 2
    if gguf.GGUFReader(path).fields["tokenizer.ggml.model"].contents() == "llama":
        reference = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        expected = [reference(text, add_special_tokens=False)["input_ids"] for text in TEXTS]
    else:
        reference = tokenizer_of(path)
        expected = [reference.encode(text).ids for text in TEXTS]
    for text, ids in zip(TEXTS, expected):
        assert tokenizer(text, add_special_tokens=False)["input_ids"] == ids, text
        assert tokenizer.decode(ids) == text


def main():
    if sys.argv[1:2] == ["--smollm2"]:
        return smollm2(*sys.argv[2:])
    if sys.argv[1:2] == ["--sentencepiece"]:
        texts = pathlib.Path(sys.argv[3]).read_bytes().decode().split("\n")
        return make_sentencepiece(pathlib.Path(sys.argv[2]), texts, texts, 3000)
    if sys.argv[1:2] == ["--folder"]:
        return check_folder(*sys.argv[2:])
    here = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "gguf"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    folder.mkdir(parents=True, exist_ok=True)
    torture = (TORTURE / "torture.txt").read_bytes().decode().split("\n")
    lines = SMALL.read_text(encoding="utf-8").splitlines() * 6 + torture[:10]
    make_sentencepiece(folder.parent / "gguf_sentencepiece", lines, torture, 420)
    make_llama(
        folder,
        "tied_quantised",
        [Type.Q8_0, Type.Q4_1, Type.Q4_0],
        add_bos=False,
        hidden_size=96,
        intermediate_size=32,
        num_attention_heads=3,
        num_key_value_heads=1,
        head_dim=32,
        tie_word_embeddings=True,
        rope_parameters=dict(rope_type="default", rope_theta=1000.0),
    )
    make_llama(
        folder,
        "untied_llama3",
        [Type.BF16, Type.F16, Type.F32, Type.BF16],
        add_bos=True,
        hidden_size=24,
        intermediate_size=37,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=10,
        rope_parameters=dict(
            rope_type="llama3",
            rope_theta=100.0,
            factor=8.0,
            low_freq_factor=1.0,
            high_freq_factor=4.0,
            original_max_position_embeddings=64,
        ),
    )


if __name__ == "__main__":
    main()
