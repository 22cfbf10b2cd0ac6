"""Makes tests/goldens/bert, roberta, distilbert, electra, mpnet, deberta_v2, modernbert and nomic_bert: tiny random models as transformers writes them (with and without the
prefix of their tensors, a pooler, a head for masked words), and what it computes with them in double precision, on a
padded batch: states, pooled states and logits of words.

    python -m venv venv && venv/bin/pip install torch transformers safetensors numpy
    venv/bin/python tests/oracles/bert_goldens.py [FOLDER [FAMILY ...]]
"""

import pathlib
import shutil
import sys

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import (BertForMaskedLM, BertForSequenceClassification, CamembertForMaskedLM, DebertaV2ForMaskedLM, DebertaV2Model,
                          DistilBertForQuestionAnswering, BertForPreTraining, BertModel, DistilBertForMaskedLM, DistilBertModel, ElectraForMaskedLM, ElectraModel,
                          ModernBertForMaskedLM, ModernBertForSequenceClassification, ModernBertModel, MPNetForMaskedLM, MPNetModel, NomicBertForMaskedLM, NomicBertModel,
                          RobertaForMaskedLM, RobertaModel, XLMRobertaForMaskedLM)

# Odd and unequal on purpose. RoBERTa's longest sequence is max_position_embeddings - pad_token_id - 1.
MODELS = {
    "bert/pretraining": (BertForPreTraining, dict(vocab_size=61, max_position_embeddings=131, hidden_size=21,
                                                  num_hidden_layers=3, num_attention_heads=3, intermediate_size=31)),
    "bert/masked": (BertForMaskedLM, dict(vocab_size=53, max_position_embeddings=37, hidden_size=20,
                                          num_hidden_layers=1, num_attention_heads=5, intermediate_size=17,
                                          type_vocab_size=3, hidden_act="gelu_new", layer_norm_eps=1e-5)),
    "bert/encoder": (BertModel, dict(vocab_size=43, max_position_embeddings=41, hidden_size=24, num_hidden_layers=2,
                                     num_attention_heads=2, intermediate_size=19, hidden_act="relu")),
    "roberta/masked": (RobertaForMaskedLM, dict(vocab_size=53, max_position_embeddings=135, hidden_size=20,
                                                num_hidden_layers=2, num_attention_heads=5, intermediate_size=17,
                                                type_vocab_size=1, hidden_act="relu", layer_norm_eps=1e-5)),
    "roberta/encoder": (RobertaModel, dict(vocab_size=43, max_position_embeddings=45, hidden_size=21,
                                           num_hidden_layers=1, num_attention_heads=3, intermediate_size=19,
                                           type_vocab_size=1, pad_token_id=3)),
    "roberta/xlm": (XLMRobertaForMaskedLM, dict(vocab_size=47, max_position_embeddings=33, hidden_size=14,
                                                num_hidden_layers=1, num_attention_heads=2, intermediate_size=23,
                                                type_vocab_size=1)),
    "roberta/camembert": (CamembertForMaskedLM, dict(vocab_size=41, max_position_embeddings=35, hidden_size=14,
                                                     num_hidden_layers=1, num_attention_heads=2, intermediate_size=23,
                                                     type_vocab_size=1)),
    "bert/classifier": (BertForSequenceClassification, dict(vocab_size=31, max_position_embeddings=33, hidden_size=14,
                                                            num_hidden_layers=1, num_attention_heads=2,
                                                            intermediate_size=11, num_labels=3)),
    "distilbert/answers": (DistilBertForQuestionAnswering, dict(vocab_size=31, max_position_embeddings=33, dim=14,
                                                                n_layers=1, n_heads=2, hidden_dim=11)),
    "distilbert/masked": (DistilBertForMaskedLM, dict(vocab_size=53, max_position_embeddings=131, dim=21, n_layers=2,
                                                      n_heads=3, hidden_dim=29, activation="relu")),
    "distilbert/encoder": (DistilBertModel, dict(vocab_size=43, max_position_embeddings=37, dim=20, n_layers=1,
                                                 n_heads=5, hidden_dim=19, sinusoidal_pos_embds=True)),
    # Embeddings of another width than the states, or of the same.
    "electra/masked": (ElectraForMaskedLM, dict(vocab_size=53, max_position_embeddings=131, embedding_size=13, hidden_size=21,
                                                num_hidden_layers=2, num_attention_heads=3, intermediate_size=29,
                                                hidden_act="relu", layer_norm_eps=1e-5)),
    "electra/encoder": (ElectraModel, dict(vocab_size=43, max_position_embeddings=37, embedding_size=20, hidden_size=20,
                                           num_hidden_layers=1, num_attention_heads=5, intermediate_size=19,
                                           type_vocab_size=3)),
    "mpnet/masked": (MPNetForMaskedLM, dict(vocab_size=41, max_position_embeddings=133, hidden_size=14,
                                            num_hidden_layers=2, num_attention_heads=2, intermediate_size=23)),
    "mpnet/encoder": (MPNetModel, dict(vocab_size=37, max_position_embeddings=43, hidden_size=21, num_hidden_layers=1,
                                       num_attention_heads=3, intermediate_size=19, hidden_act="relu", pad_token_id=4)),
    # As version 3: queries and keys meet vectors by their own projections; distances of 4 and more share vectors.
    "deberta_v2/masked": (DebertaV2ForMaskedLM, dict(vocab_size=41, max_position_embeddings=131, hidden_size=21,
                                                     num_hidden_layers=3, num_attention_heads=3, intermediate_size=23,
                                                     relative_attention=True, position_biased_input=False,
                                                     pos_att_type="p2c|c2p", share_att_key=True, position_buckets=8,
                                                     norm_rel_ebd="layer_norm")),
    "deberta_v2/separate": (DebertaV2Model, dict(vocab_size=37, max_position_embeddings=43, hidden_size=20,
                                                 num_hidden_layers=2, num_attention_heads=5, intermediate_size=19,
                                                 relative_attention=True, max_relative_positions=31,
                                                 pos_att_type=["c2p", "p2c"], position_buckets=10, hidden_act="relu",
                                                 type_vocab_size=2, layer_norm_eps=1e-5)),
    "deberta_v2/content": (DebertaV2Model, dict(vocab_size=37, max_position_embeddings=33, hidden_size=14,
                                                num_hidden_layers=2, num_attention_heads=2, intermediate_size=11,
                                                relative_attention=True, max_relative_positions=9,
                                                pos_att_type=["c2p"], norm_rel_ebd="layer_norm")),
    "deberta_v2/position": (DebertaV2Model, dict(vocab_size=37, max_position_embeddings=35, hidden_size=14,
                                                 num_hidden_layers=2, num_attention_heads=2, intermediate_size=11,
                                                 relative_attention=True, pos_att_type=["p2c"], share_att_key=True,
                                                 position_biased_input=False)),
    "deberta_v2/infilling": (DebertaV2ForMaskedLM, dict(vocab_size=31, max_position_embeddings=29, hidden_size=14,
                                                        num_hidden_layers=1, num_attention_heads=1,
                                                        intermediate_size=11, legacy=False, pos_att_type=["p2c"])),
    "nomic_bert/masked": (NomicBertForMaskedLM, dict(vocab_size=53, max_position_embeddings=131, hidden_size=18,
                                                     num_hidden_layers=2, num_attention_heads=3, intermediate_size=29,
                                                     layer_norm_eps=1e-5)),
    "nomic_bert/encoder": (NomicBertModel, dict(vocab_size=43, max_position_embeddings=37, hidden_size=20,
                                                num_hidden_layers=1, num_attention_heads=5, intermediate_size=19,
                                                hidden_act="gelu", type_vocab_size=3, head_dim=6,
                                                rope_parameters=dict(rope_type="linear", rope_theta=70.0, factor=3.0))),
    # Layers 0 and 3 see everything, layers 1 and 2 five tokens to each side.
    "modernbert/masked": (ModernBertForMaskedLM, dict(vocab_size=41, max_position_embeddings=131, hidden_size=18,
                                                      num_hidden_layers=4, num_attention_heads=3, intermediate_size=13,
                                                      local_attention=11, pad_token_id=2)),
    "modernbert/encoder": (ModernBertModel, dict(vocab_size=37, max_position_embeddings=41, hidden_size=20,
                                                 num_hidden_layers=2, num_attention_heads=5, intermediate_size=11,
                                                 attention_bias=True, mlp_bias=True, norm_bias=True,
                                                 hidden_activation="silu", local_attention=4, pad_token_id=1,
                                                 layer_types=["sliding_attention", "full_attention"])),
    "modernbert/classifier": (ModernBertForSequenceClassification, dict(vocab_size=31, max_position_embeddings=33,
                                                                        hidden_size=14, num_hidden_layers=1,
                                                                        num_attention_heads=1, intermediate_size=11,
                                                                        pad_token_id=0, num_labels=3)),
}


def make(folder, name, kind, sizes):
    torch.manual_seed(sum(map(ord, name)))
    model = kind(kind.config_class(attn_implementation="eager", **sizes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter + 0.3 * torch.randn_like(parameter))
    shutil.rmtree(folder / name, ignore_errors=True)
    model.save_pretrained(folder / name)
    model = model.double()
    random = np.random.default_rng(11)
    config = model.config
    pad = config.pad_token_id
    before = pad + 1 if name.startswith("roberta/") else 2 if name.startswith("mpnet/") else 0  # rows of positions
    longest = config.max_position_embeddings - before
    lengths = [1, 2, 127 if longest > 127 else 27, longest]
    ids = [random.integers(pad + 1, config.vocab_size, n) for n in lengths]
    types = [random.integers(0, max(1, getattr(config, "type_vocab_size", 1)), n) for n in lengths]
    padded = lambda rows, filler: torch.tensor(
        np.array([np.pad(r, (0, longest - len(r)), constant_values=filler) for r in rows]))
    mask = torch.tensor(np.array([[1] * n + [0] * (longest - n) for n in lengths]))
    more = {"token_type_ids": padded(types, 0)} if getattr(config, "type_vocab_size", 0) else {}
    with torch.no_grad():
        out = model(input_ids=padded(ids, pad), attention_mask=mask, output_hidden_states=True, **more)
        base = getattr(model, model.base_model_prefix, model)
        pooler = getattr(base, "pooler", None)
        pooled = pooler(out.hidden_states[-1]) if pooler is not None else None
    unpadded = lambda t: np.concatenate([t[s, :n].numpy() for s, n in enumerate(lengths)]).astype(np.float32)
    tensors = {"lengths": np.array(lengths), "ids": np.concatenate(ids), "types": np.concatenate(types),
               "states": unpadded(out.hidden_states[-1])}
    if pooled is not None:
        tensors["pooled"] = pooled.numpy().astype(np.float32)
    logits = getattr(out, "logits", getattr(out, "prediction_logits", None))
    if logits is not None and logits.dim() == 2:  # of classes
        logits = None
    if logits is not None:
        tensors["logits"] = unpadded(logits)
    save_file(tensors, folder / f"{name}.golden.safetensors")


def main():
    here = pathlib.Path(__file__).resolve().parent.parent / "goldens"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    for name, (kind, sizes) in MODELS.items():
        if sys.argv[2:] and name.split("/")[0] not in sys.argv[2:]:
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        make(folder, name, kind, sizes)


if __name__ == "__main__":
    main()
