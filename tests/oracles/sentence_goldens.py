"""Makes tests/goldens/sentences: tiny random models as sentence-transformers writes them, and the vectors that it computes
with them for the lines of sentences.txt.

    python -m venv venv && venv/bin/pip install torch transformers sentence-transformers
    venv/bin/python tests/oracles/sentence_goldens.py [FOLDER]
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
from transformers import BertModel, ElectraModel, NomicBertModel, PreTrainedTokenizerFast, RobertaModel

WORDS = "two dogs run in the garden a cat sees small birds and sleeps under big trees . ,".split()
# Empty, unknown words, capitals, longer than each model reads.
SENTENCES = ["two dogs run .", "", "the cat", "Two Dogs RUN in the garden", "a zebra sees a small cat .", " ".join(WORDS * 2),
             "birds sleep", "the big cat sleeps under the trees , and two small birds run in the garden ."]
# What the sizes of these models are besides those of all; rotary positions need an even size of heads.
SIZES = {
    BertModel: dict(max_position_embeddings=31),
    RobertaModel: dict(max_position_embeddings=32, type_vocab_size=1),
    ElectraModel: dict(max_position_embeddings=31, embedding_size=9),
    NomicBertModel: dict(max_position_embeddings=31, hidden_size=12, layer_norm_eps=1e-5),
}
MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")


def transformer(folder, kind, longest, **settings):
    """A random model with a tokenizer of words: [CLS] text [SEP]."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {token: i for i, token in enumerate(special + WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                   sep_token="[SEP]", model_max_length=longest)
    sizes = dict(vocab_size=len(vocabulary), hidden_size=14, num_hidden_layers=2, num_attention_heads=2,
                 intermediate_size=23, pad_token_id=0)
    model = kind(kind.config_class(**sizes | SIZES[kind]))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter + 0.3 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return Transformer(str(folder), **settings)


def behind_a_prompt(folder):
    """The vectors of a model that leaves its prompt out of the pooling; the prompt is read in lower case, as the texts are."""
    model = SentenceTransformer(str(folder), prompts={"query": "The cat "}, default_prompt_name="query", device="cpu")
    model.set_pooling_include_prompt(False)
    return model.encode(SENTENCES).astype("float32")


def with_activations(folder):
    """The vectors of a model whose first dense layer has another activation, by its name in torch.nn."""
    model, vectors = SentenceTransformer(str(folder), device="cpu"), {}
    for name in ("Tanh", "Identity", "ReLU", "GELU", "SiLU", "Sigmoid"):
        model[2].activation_function = getattr(torch.nn, name)()
        vectors[name] = model.encode(SENTENCES).astype("float32")
    return vectors


def main():
    here = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "sentences"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "sentences.txt").write_text("".join(sentence + "\n" for sentence in SENTENCES))
    torch.manual_seed(5)
    vectors = {}
    for name, kind, longest, settings, more in [
        ("modes", BertModel, 13, {"do_lower_case": True}, lambda: [Pooling(14, MODES)]),
        ("dense", RobertaModel, 29, {}, lambda: [Pooling(14, "mean"), Dense(14, 11), Normalize(),
                                                  Dense(11, 9, bias=False, activation_function=torch.nn.Identity())]),
        ("plain", BertModel, 17, {}, None),
        ("electra", ElectraModel, 19, {}, lambda: [Pooling(14, "mean"), Normalize()]),
        ("nomic", NomicBertModel, 23, {}, lambda: [Pooling(12, "mean"), Normalize()]),
    ]:
        with tempfile.TemporaryDirectory() as scratch:
            base = transformer(pathlib.Path(scratch), kind, longest, **settings)
            if more is None:  # a folder of transformers alone
                model = SentenceTransformer(scratch, device="cpu")
                shutil.copytree(scratch, folder / name)
            else:
                model = SentenceTransformer(modules=[base, *more()], device="cpu")
                model.save(str(folder / name), create_model_card=False)
            vectors[name] = model.encode(SENTENCES).astype("float32")
    vectors["modes behind a prompt"] = behind_a_prompt(folder / "modes")
    save_file(vectors, folder / "vectors.safetensors")
    save_file(with_activations(folder / "dense"), folder / "activations.safetensors")


if __name__ == "__main__":
    main()
