"""Makes tests/goldens/labels: tiny random classifiers of texts and of tokens as transformers writes them, the logits that it computes
with them in double precision, and the gradients of one label's logits (their sum over the batch) by the table of
embeddings. bert_pairs, bert_words, roberta_texts, llama_pairs and gpt2_words have a tokenizer, too, and what pipelines of
transformers say of texts. Of the decoders that classify texts two sequences end with padding tokens, which their rule passes over.

  scripts/python torch transformers tokenizers safetensors numpy && .venv/bin/python tests/oracles/label_goldens.py [FOLDER [NAME...]]
"""

import json
import pathlib
import shutil
import sys

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BartForSequenceClassification,
    BertForSequenceClassification,
    BertForTokenClassification,
    CamembertForTokenClassification,
    DebertaV2ForSequenceClassification,
    DebertaV2ForTokenClassification,
    DistilBertForSequenceClassification,
    DistilBertForTokenClassification,
    ElectraForPreTraining,
    ElectraForSequenceClassification,
    ElectraForTokenClassification,
    Gemma2ForTokenClassification,
    Gemma3TextForSequenceClassification,
    GPT2ForSequenceClassification,
    GPT2ForTokenClassification,
    GPTNeoForSequenceClassification,
    GPTNeoForTokenClassification,
    GPTNeoXForSequenceClassification,
    GPTNeoXForTokenClassification,
    LlamaForSequenceClassification,
    LlamaForTokenClassification,
    MBartForSequenceClassification,
    MistralForSequenceClassification,
    MT5ForSequenceClassification,
    MT5ForTokenClassification,
    ModernBertForSequenceClassification,
    ModernBertForTokenClassification,
    MPNetForSequenceClassification,
    MPNetForTokenClassification,
    NomicBertForSequenceClassification,
    NomicBertForTokenClassification,
    Olmo2ForSequenceClassification,
    OPTForSequenceClassification,
    Phi3ForSequenceClassification,
    PhiForTokenClassification,
    PreTrainedTokenizerFast,
    Qwen2ForTokenClassification,
    Qwen3ForSequenceClassification,
    RobertaForSequenceClassification,
    RobertaForTokenClassification,
    SmolLM3ForSequenceClassification,
    T5ForSequenceClassification,
    T5ForTokenClassification,
    UMT5ForSequenceClassification,
    UMT5ForTokenClassification,
    XLMRobertaForSequenceClassification,
    pipeline,
)

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "goldens"
BERT = dict(vocab_size=97, max_position_embeddings=33, hidden_size=14, num_hidden_layers=2, num_attention_heads=2, intermediate_size=11)
ROBERTA = BERT | dict(type_vocab_size=1)
ELECTRA = BERT | dict(embedding_size=9)
NOMIC = BERT | dict(hidden_size=12, num_attention_heads=3)
DISTIL = dict(vocab_size=97, max_position_embeddings=31, dim=15, n_layers=2, n_heads=3, hidden_dim=13)
MODERN = dict(vocab_size=97, max_position_embeddings=29, hidden_size=18, num_hidden_layers=2, num_attention_heads=3,
              intermediate_size=13, local_attention=4, pad_token_id=0, layer_types=["sliding_attention", "full_attention"])  # fmt: skip
DEBERTA = BERT | dict(relative_attention=True, pos_att_type=["c2p", "p2c"], share_att_key=True, position_buckets=6,
                      norm_rel_ebd="layer_norm", position_biased_input=False, type_vocab_size=0)  # fmt: skip
LLAMA = dict(vocab_size=97, max_position_embeddings=37, hidden_size=20, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             head_dim=6, intermediate_size=13, bos_token_id=0, eos_token_id=2, pad_token_id=1)  # fmt: skip
GPT2 = dict(vocab_size=97, n_positions=37, n_embd=15, n_layer=2, n_head=3, n_inner=13, bos_token_id=0, eos_token_id=2, pad_token_id=1)
PHI = {key: value for key, value in LLAMA.items() if key != "head_dim"} | dict(hidden_size=24, num_attention_heads=3, num_key_value_heads=1)
GEMMA = LLAMA | dict(sliding_window=4, layer_types=["sliding_attention", "full_attention"])
NEO = dict(vocab_size=97, max_position_embeddings=37, hidden_size=15, num_layers=2, num_heads=3, intermediate_size=13, window_size=4,
           attention_types=[[["global", "local"], 1]], bos_token_id=0, eos_token_id=2, pad_token_id=1)  # fmt: skip
NEOX = dict(vocab_size=97, max_position_embeddings=37, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=13,
            bos_token_id=0, eos_token_id=2, pad_token_id=1)  # fmt: skip
OPT = dict(vocab_size=97, max_position_embeddings=37, hidden_size=15, num_hidden_layers=2, num_attention_heads=3, ffn_dim=13,
           word_embed_proj_dim=15, bos_token_id=0, eos_token_id=2, pad_token_id=1)  # fmt: skip
T5 = dict(vocab_size=97, d_model=15, d_kv=6, d_ff=13, num_layers=2, num_heads=3, relative_attention_num_buckets=8,
          relative_attention_max_distance=12, pad_token_id=0, eos_token_id=1)  # fmt: skip
T5_BOTH = T5 | dict(decoder_start_token_id=0, num_decoder_layers=3, initializer_factor=0.5)
BART = dict(vocab_size=97, max_position_embeddings=37, d_model=14, encoder_layers=2, decoder_layers=3, encoder_attention_heads=2,
            decoder_attention_heads=7, encoder_ffn_dim=11, decoder_ffn_dim=13, bos_token_id=0, pad_token_id=1, eos_token_id=2,
            decoder_start_token_id=2)  # fmt: skip
# Whose labels are read at the last end token.
AT_END = ("bart_", "mbart_", "t5_texts", "mt5_texts", "umt5_texts")


def names(*labels):
    return dict(id2label=dict(enumerate(labels)), label2id={label: i for i, label in enumerate(labels)})


MODELS = {
    "bert_pairs": (BertForSequenceClassification, BERT | dict(vocab_size=72) | names("entailment", "neutral", "contradiction")),
    "bert_regression": (BertForSequenceClassification, BERT | dict(num_labels=1, problem_type="regression")),
    "bert_tokens": (BertForTokenClassification, BERT | names("O", "B-PER", "I-PER", "B-LOC", "I-LOC")),
    "bert_words": (BertForTokenClassification, BERT | dict(vocab_size=72) | names("O", "B-PER", "I-PER")),
    "roberta_texts": (RobertaForSequenceClassification,
                      ROBERTA | dict(vocab_size=72, problem_type="multi_label_classification") | names("joy", "anger", "fear", "love")),
    "roberta_tokens": (RobertaForTokenClassification, ROBERTA | dict(num_labels=7)),
    "xlm_roberta_ranker": (XLMRobertaForSequenceClassification, ROBERTA | dict(num_labels=1)),
    "camembert_tokens": (CamembertForTokenClassification, ROBERTA | dict(num_labels=3)),
    "deberta_texts": (DebertaV2ForSequenceClassification, DEBERTA | names("entailment", "neutral", "contradiction")),
    "deberta_tokens": (DebertaV2ForTokenClassification,
                       DEBERTA | dict(num_labels=5, share_att_key=False, position_biased_input=True, position_buckets=-1)),
    "distilbert_texts": (DistilBertForSequenceClassification, DISTIL | names("NEGATIVE", "POSITIVE")),
    "distilbert_tokens": (DistilBertForTokenClassification, DISTIL | dict(num_labels=5)),
    "electra_texts": (ElectraForSequenceClassification, ELECTRA | dict(hidden_act="relu", num_labels=3)),
    "electra_tokens": (ElectraForTokenClassification, BERT | dict(embedding_size=14, num_labels=5)),
    "electra_replaced": (ElectraForPreTraining, ELECTRA | dict(hidden_act="relu")),
    "mpnet_texts": (MPNetForSequenceClassification, BERT | dict(num_labels=3)),
    "mpnet_tokens": (MPNetForTokenClassification, BERT | dict(num_labels=2)),
    "nomic_bert_texts": (NomicBertForSequenceClassification, NOMIC | dict(num_labels=3)),
    "nomic_bert_tokens": (NomicBertForTokenClassification, NOMIC | dict(num_labels=5)),
    "modernbert_first": (ModernBertForSequenceClassification, MODERN | dict(num_labels=3, classifier_bias=True, norm_bias=True)),
    "modernbert_mean": (ModernBertForSequenceClassification,
                        MODERN | dict(num_labels=5, classifier_pooling="mean", classifier_activation="silu")),
    "modernbert_tokens": (ModernBertForTokenClassification, MODERN | dict(num_labels=5)),
    "llama_pairs": (LlamaForSequenceClassification, LLAMA | dict(vocab_size=72) | names("entailment", "neutral", "contradiction")),
    "llama_reward": (LlamaForSequenceClassification, LLAMA | dict(num_labels=1, pad_token_id=None, problem_type="regression")),
    "llama_tokens": (LlamaForTokenClassification, LLAMA | dict(num_labels=7, attention_bias=True)),
    "llama_tokens_no_bias": (LlamaForTokenClassification, LLAMA | dict(num_labels=2, token_classification_bias=False)),
    "mistral_texts": (MistralForSequenceClassification, LLAMA | dict(num_labels=5, sliding_window=3)),
    "qwen2_tokens": (Qwen2ForTokenClassification, {**PHI, "tie_word_embeddings": True} | names("O", "B-PER", "I-PER")),
    "qwen3_ranker": (Qwen3ForSequenceClassification, LLAMA | dict(num_labels=1, tie_word_embeddings=True)),
    "gemma2_tokens": (Gemma2ForTokenClassification, GEMMA | dict(num_labels=3, query_pre_attn_scalar=6)),
    "gemma3_texts": (Gemma3TextForSequenceClassification,
                     GEMMA | dict(query_pre_attn_scalar=6, problem_type="multi_label_classification") | names("joy", "anger", "fear", "love")),
    "gemma3_both_sides": (Gemma3TextForSequenceClassification,
                          GEMMA | dict(num_labels=3, query_pre_attn_scalar=6, use_bidirectional_attention=True)),
    "phi_tokens": (PhiForTokenClassification, PHI | dict(num_labels=3)),
    "phi3_texts": (Phi3ForSequenceClassification, PHI | dict(num_labels=2)),
    "olmo2_texts": (Olmo2ForSequenceClassification, PHI | dict(num_labels=3)),
    "smollm3_texts": (SmolLM3ForSequenceClassification, PHI | dict(num_labels=3, no_rope_layers=[1, 0])),
    "gpt2_texts": (GPT2ForSequenceClassification, GPT2 | names("NEGATIVE", "POSITIVE")),
    "gpt2_words": (GPT2ForTokenClassification, GPT2 | dict(vocab_size=290) | names("O", "B-PER", "I-PER")),
    "gpt_neo_texts": (GPTNeoForSequenceClassification, NEO | dict(num_labels=3)),
    "gpt_neo_tokens": (GPTNeoForTokenClassification, NEO | dict(num_labels=2)),
    "gpt_neox_texts": (GPTNeoXForSequenceClassification, NEOX | dict(num_labels=3)),
    "gpt_neox_tokens": (GPTNeoXForTokenClassification, NEOX | dict(num_labels=2)),
    "t5_tokens": (T5ForTokenClassification, T5 | names("O", "B-PER", "I-PER")),
    "mt5_tokens": (MT5ForTokenClassification, T5 | dict(num_labels=2)),
    "umt5_tokens": (UMT5ForTokenClassification, T5 | dict(num_labels=5, feed_forward_proj="gated-gelu")),
    "bart_pairs": (BartForSequenceClassification, BART | dict(vocab_size=72) | names("contradiction", "neutral", "entailment")),
    "mbart_texts": (MBartForSequenceClassification, BART | dict(num_labels=2, scale_embedding=True)),
    "t5_texts": (T5ForSequenceClassification, T5_BOTH | dict(num_labels=3)),
    "mt5_texts": (MT5ForSequenceClassification, T5_BOTH | dict(num_labels=1, problem_type="regression", feed_forward_proj="gated-gelu")),
    "umt5_texts": (UMT5ForSequenceClassification, T5_BOTH | dict(num_labels=5)),
    "opt_texts": (OPTForSequenceClassification, OPT | dict(num_labels=3)),
}  # fmt: skip
LABEL = 0  # whose gradients are kept
TEXTS = ["two dogs run.", "a", "the cat sees a small, odd house!", "Naïve 漢字 <s> x"]
PAIRS = ["dogs walk", "the cat sees nothing", "a", "two dogs"]  # a pipeline leaves out an empty one


def make_byte_tokenizer(folder):
    """Byte-pair encoding as GPT-2's, without special tokens around a text."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.post_processor = processors.ByteLevel(trim_offsets=True)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(
        [line for line in TEXTS[:3] + PAIRS for _ in range(3)],
        trainers.BpeTrainer(vocab_size=290, special_tokens=["<s>", "<pad>", "</s>"], show_progress=False,
                            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))  # fmt: skip
    PreTrainedTokenizerFast(tokenizer_object=t, bos_token="<s>", eos_token="</s>", pad_token="<pad>", model_max_length=37,
                            model_input_names=["input_ids", "attention_mask"]).save_pretrained(folder)  # fmt: skip


def make_tokenizer(folder, name):
    """WordPiece of BERT's form; of RoBERTa's and Llama's their templates around the same pieces."""
    if name.startswith("gpt2"):
        return make_byte_tokenizer(folder)
    t = Tokenizer(models.WordPiece(unk_token="<unk>"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    t.train_from_iterator([line for line in TEXTS[:3] + PAIRS for _ in range(3)],
                          trainers.WordPieceTrainer(vocab_size=90, special_tokens=special, show_progress=False))  # fmt: skip
    if name.startswith(("roberta", "bart")):
        t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=False)
    elif name.startswith("llama"):
        t.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 0)])
    else:
        t.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[("<s>", 0), ("</s>", 2)])
    PreTrainedTokenizerFast(
        tokenizer_object=t, cls_token="<s>", sep_token="</s>", pad_token="<pad>", unk_token="<unk>", mask_token="<mask>",
        model_max_length=29).save_pretrained(folder)  # fmt: skip


def said_of_texts(folder):
    """What pipelines say, all labels of a text in the order of their numbers."""
    classify = pipeline("text-classification", model=str(folder), top_k=None, dtype=torch.float64)
    number = classify.model.config.label2id
    rows = []
    for first, second in zip(TEXTS, PAIRS):
        row = {"text": first, "pair": second}
        for key, text in (("of_text", first), ("of_pair", {"text": first, "text_pair": second})):
            found = classify([text])[0]
            row[key] = [one["score"] for one in sorted(found, key=lambda one: number[one["label"]])]
        rows.append(row)
    return rows


def said_of_words(folder):
    """The best label of each token of a text."""
    classify = pipeline("token-classification", model=str(folder), dtype=torch.float64, ignore_labels=[])
    return [{"entity": one["entity"], "score": float(one["score"])} for one in classify("the cat sees a house!")]


def logits_of(model, inputs, more):
    """ELECTRA's discriminator gives a number for each token, others a row."""
    found = model(**inputs, **more).logits
    return found[..., None] if isinstance(model, ElectraForPreTraining) else found


def row_logits(model, ids, types):
    """Of a sequence by itself: [1, labels], or of tokens [N, labels]."""
    more = {} if types is None else {"token_type_ids": torch.tensor(types)[None]}
    found = logits_of(model, {"input_ids": torch.tensor(ids)[None]}, more)
    return found[0] if found.dim() == 3 else found


def padded_logits(model, ids, types, pad):
    """Of all sequences as one batch, which gives the same."""
    longest = max(map(len, ids))
    padded = lambda rows, filler: torch.tensor(
        np.array([np.pad(row, (0, longest - len(row)), constant_values=filler) for row in rows]))
    mask = torch.tensor(np.array([[1] * len(row) + [0] * (longest - len(row)) for row in ids]))
    more = {} if types is None else {"token_type_ids": padded(types, 0)}
    found = logits_of(model, {"input_ids": padded(ids, pad), "attention_mask": mask}, more)
    return torch.cat([found[s, : len(row)] for s, row in enumerate(ids)]) if found.dim() == 3 else found


def make(root, name):
    kind, settings = MODELS[name]
    torch.manual_seed(sum(map(ord, name)))
    model = kind(kind.config_class(attn_implementation="eager", **settings)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # The scores of T5 have no scale: larger numbers would make float32 differ from float64.
            parameter.copy_(parameter + (0.15 if "t5_" in name else 0.4) * torch.randn_like(parameter))
    folder = root / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    said = {"bert_pairs": said_of_texts, "roberta_texts": said_of_texts, "bert_words": said_of_words, "llama_pairs": said_of_texts, "bart_pairs": said_of_texts,
            "gpt2_words": said_of_words}.get(name)  # fmt: skip
    if said is not None:
        make_tokenizer(folder, name)
        (root / f"{name}.texts.json").write_text(json.dumps(said(folder), indent=1) + "\n")
    model = model.double()
    config, random = model.config, np.random.default_rng(13)
    pad = config.pad_token_id
    lengths = [1, 5, 23, 11]
    ids = [random.integers((pad or 0) + 1, config.vocab_size, n) for n in lengths]
    if hasattr(model, "score") and kind.__name__.endswith("SequenceClassification") and pad is not None and name != "gemma3_both_sides":
        ids[1][-1:] = ids[3][-2:] = pad
    if name.startswith(AT_END):
        for row in ids:
            row[row == config.eos_token_id] += 1
            row[-1] = config.eos_token_id
            if name.startswith("mbart") and len(row) > 1:
                row[-2:] = config.eos_token_id, 5  # a language behind the end, with which the decoder begins
    types = [random.integers(0, max(1, getattr(config, "type_vocab_size", 1)), n) for n in lengths]
    has_types = getattr(config, "type_vocab_size", 0) > 0
    rows = [row_logits(model, row, kinds if has_types else None) for row, kinds in zip(ids, types)]
    logits = torch.cat(rows)
    # With windows padded rows, out of sight of all tokens, are NaN.
    if pad is not None and not name.startswith(("modernbert", "mistral", "gemma")):
        padded = padded_logits(model, ids, types if has_types else None, pad)
        torch.testing.assert_close(padded, logits, rtol=1e-5, atol=1e-5)  # softmax of decoders is in float32
    logits[:, LABEL].sum().backward()
    gradient = model.get_input_embeddings().weight.grad
    if pad is not None and not name.startswith(AT_END):  # a decoder may begin with it
        gradient[pad] = 0
    save_file({"lengths": np.array(lengths), "ids": np.concatenate(ids), "types": np.concatenate(types),
               "logits": logits.detach().numpy().astype(np.float32), "gradient": gradient.numpy().astype(np.float32)},
              root / f"{name}.golden.safetensors")  # fmt: skip
    print(name, tuple(logits.shape), float(logits.detach().abs().max()))


def main():
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDENS / "labels"
    root.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or MODELS:
        make(root, name)


if __name__ == "__main__":
    main()
