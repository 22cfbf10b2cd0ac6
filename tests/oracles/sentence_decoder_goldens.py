"""Makes tests/goldens/sentence_decoders: tiny random decoders as sentence-transformers writes them, of the shapes of EmbeddingGemma
and of Qwen3-Embedding, and the vectors that it computes with them for the lines of sentences.txt behind their prompts.

    python -m venv venv && venv/bin/pip install torch transformers sentence-transformers
    venv/bin/python tests/oracles/sentence_decoder_goldens.py [FOLDER]
"""

import os
import pathlib
import shutil
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from safetensors.numpy import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import Gemma3TextConfig, Gemma3TextModel, PreTrainedTokenizerFast, Qwen3Config, Qwen3Model

WORDS = ("two dogs run in the garden a cat sees small birds and sleeps under big trees . , "
         ": | task search result query title none text similarity instruct given find").split()
# Empty, one word, unknown words, more words than twice a window, more than each model reads.
SENTENCES = ["two dogs run .", "", "cat", "a zebra sees a small cat .", "birds sleep", "the big cat sleeps under the trees .",
             " ".join(WORDS[:23]), " ".join(WORDS * 2)]
GEMMA_PROMPTS = {"query": "task : search result | query : ", "document": "title : none | text : ",
                 "STS": "task : similarity | query : "}
QWEN_PROMPTS = {"query": "instruct : given a query , find text .\nquery :", "document": ""}


def tokenizer(special, template, **settings):
    """Words, and what stands around a text."""
    vocabulary = {token: i for i, token in enumerate(special + WORDS)}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single=template, special_tokens=[(name, vocabulary[name]) for name in template.split() if name != "$A"])
    return len(vocabulary), PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", **settings)


def transformer(kind, config, words):
    """A random model and its tokenizer."""
    model = kind(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter + 0.3 * torch.randn_like(parameter))
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        words.save_pretrained(folder)
        return Transformer(folder)


def gemma():
    size, words = tokenizer(["<pad>", "<eos>", "<bos>", "<unk>"], "<bos> $A <eos>", pad_token="<pad>", eos_token="<eos>",
                            bos_token="<bos>", model_max_length=37)
    config = Gemma3TextConfig(
        vocab_size=size, hidden_size=14, intermediate_size=23, num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=1,
        head_dim=6, max_position_embeddings=41, query_pre_attn_scalar=5, sliding_window=7, use_bidirectional_attention=True,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"], pad_token_id=0, eos_token_id=1, bos_token_id=2)
    steps = [Dense(14, 19, bias=False, activation_function=torch.nn.Identity()),
             Dense(19, 11, bias=False, activation_function=torch.nn.Identity()), Normalize()]
    return SentenceTransformer(modules=[transformer(Gemma3TextModel, config, words), Pooling(14, "mean"), *steps],
                               prompts=GEMMA_PROMPTS, device="cpu")


def qwen():
    size, words = tokenizer(["<unk>", "<|endoftext|>", "<|im_end|>"], "$A <|endoftext|>", pad_token="<|endoftext|>",
                            eos_token="<|im_end|>", padding_side="left", model_max_length=31)
    config = Qwen3Config(
        vocab_size=size, hidden_size=14, intermediate_size=23, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        head_dim=6, max_position_embeddings=43, tie_word_embeddings=True, pad_token_id=1, eos_token_id=2, bos_token_id=1)
    return SentenceTransformer(modules=[transformer(Qwen3Model, config, words), Pooling(14, "lasttoken"), Normalize()],
                               prompts=QWEN_PROMPTS, device="cpu")


def vectors(model, **settings):
    return model.encode(SENTENCES, batch_size=3, **settings).astype("float32")


def main():
    here = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "sentence_decoders"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "sentences.txt").write_text("".join(sentence + "\n" for sentence in SENTENCES))
    torch.manual_seed(7)
    found = {}
    for name, make in [("gemma", gemma), ("qwen", qwen)]:
        make().save(str(folder / name), create_model_card=False)
        model = SentenceTransformer(str(folder / name), device="cpu")
        found[name] = vectors(model)
        for prompt in model.prompts:
            found[f"{name} {prompt}"] = vectors(model, prompt_name=prompt)
        found[f"{name} own"] = vectors(model, prompt="find birds : ")
        found[f"{name} encode_query"] = model.encode_query(SENTENCES).astype("float32")
        found[f"{name} encode_document"] = model.encode_document(SENTENCES).astype("float32")
        model.set_pooling_include_prompt(False)
        found[f"{name} behind query"] = vectors(model, prompt_name="query")
        found[f"{name} behind own"] = vectors(model, prompt="find birds : ")
    # What encode_query() and encode_document() do is to take the prompts of these names.
    for name in ("gemma", "qwen"):
        for prompt in ("query", "document"):
            assert abs(found.pop(f"{name} encode_{prompt}") - found[f"{name} {prompt}"]).max() < 1e-6
    # Which side is padded must not matter.
    model = SentenceTransformer(str(folder / "qwen"), device="cpu")
    model.tokenizer.padding_side = "right"
    assert abs(vectors(model, prompt_name="query") - found["qwen query"]).max() < 1e-5
    save_file(found, folder / "vectors.safetensors")


if __name__ == "__main__":
    main()
