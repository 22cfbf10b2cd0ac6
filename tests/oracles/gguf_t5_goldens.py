"""Makes tests/goldens/gguf_t5: small T5s and a umT5 of tests/goldens (t5_goldens.py) as GGUF files, written with the names of the gguf
package as llama.cpp's converter does it. What they must compute is in the goldens beside their folders.

  scripts/python gguf numpy safetensors torch && .venv/bin/python tests/oracles/gguf_t5_goldens.py [FOLDER]
"""

import base64
import json
import pathlib
import sys

import gguf
import numpy as np
from gguf_goldens import finish
from safetensors.torch import load_file

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "goldens"
FOLDERS = ["t5/plain", "t5/flan_bf16", "t5/text", "umt5/plain"]


def add_tokenizer(writer, document, vocabulary):
    """As T5Model.set_vocab of the converter: pieces with scores, added tokens, and tokens that fill up the vocabulary."""
    added = {token["id"]: token["content"] for token in document["added_tokens"]}
    pieces = document["model"]["vocab"]
    texts = [text for text, _ in pieces] + [added.get(i, f"[PAD{i}]") for i in range(len(pieces), vocabulary)]
    scores = [score for _, score in pieces] + [-1000.0] * (vocabulary - len(pieces))
    types = []
    for i, text in enumerate(texts):
        kind = gguf.TokenType.NORMAL if i < len(pieces) else gguf.TokenType.UNUSED
        if i in added:
            kind = gguf.TokenType.USER_DEFINED
        if i < 2:
            kind = gguf.TokenType.CONTROL  # <pad> and </s>
        if i == document["model"]["unk_id"]:
            kind = gguf.TokenType.UNKNOWN
        types.append(kind)
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(texts)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_add_space_prefix(True)
    writer.add_remove_extra_whitespaces(True)
    if document["normalizer"]:
        writer.add_precompiled_charsmap(base64.b64decode(document["normalizer"]["precompiled_charsmap"]))
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(True)


def write(folder, path):
    config = json.loads((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    writer = gguf.GGUFWriter(path, "t5")
    writer.add_context_length(config.get("n_positions", 512))
    writer.add_embedding_length(config["d_model"])
    writer.add_feed_forward_length(config["d_ff"])
    writer.add_block_count(config["num_layers"])
    writer.add_decoder_block_count(config["num_decoder_layers"])
    writer.add_head_count(config["num_heads"])
    writer.add_key_length(config["d_kv"])
    writer.add_value_length(config["d_kv"])
    writer.add_layer_norm_eps(config["layer_norm_epsilon"])
    writer.add_relative_attn_buckets_count(config["relative_attention_num_buckets"])
    writer.add_layer_norm_rms_eps(config["layer_norm_epsilon"])
    writer.add_decoder_start_token_id(config["decoder_start_token_id"])
    writer.add_vocab_size(config["vocab_size"])
    if (tokenizer := folder / "tokenizer.json").exists():
        add_tokenizer(writer, json.loads(tokenizer.read_text()), config["vocab_size"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.T5, max(config["num_layers"], config["num_decoder_layers"]))
    tables = 0
    for name, tensor in sorted(weights.items()):
        if name.endswith(("shared.weight", "embed_tokens.weight")):
            tables += 1
            if tables > 1:
                continue
            name = "shared.weight"
        numbers = tensor.float().numpy()
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), np.ascontiguousarray(numbers))
    finish(writer)


def main():
    to = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDENS / "gguf_t5"
    to.mkdir(exist_ok=True)
    for name in FOLDERS:
        write(GOLDENS / name, to / (name.replace("/", "_") + ".gguf"))


if __name__ == "__main__":
    main()
