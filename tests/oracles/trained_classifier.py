"""Makes tests/goldens/labels/negated: a small BERT that says whether an English sentence of the built-in grammar is negated, trained
here in a minute, and negated.sentences.json, sentences of the grammar's test set with their labels and the places of their words of
negation.

  scripts/python torch transformers tokenizers safetensors && .venv/bin/python tests/oracles/trained_classifier.py build/multihead
"""

import collections
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "goldens" / "labels"
LABELS = ["plain", "negated"]
NEGATIONS = {"not", "no", "never"}
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
STEPS, BATCH, SENTENCES = 700, 64, 60


def label_of(line):
    return int(not NEGATIONS.isdisjoint(line.split()))


def make_tokenizer(lines):
    counts = collections.Counter(word for line in lines for word in line.split())
    vocabulary = {word: i for i, word in enumerate([*SPECIAL, *sorted(counts)])}
    t = Tokenizer(models.WordPiece(vocab=vocabulary, unk_token="[UNK]"))
    t.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return PreTrainedTokenizerFast(
        tokenizer_object=t, cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]",
        model_max_length=40)


def train(model, tokenizer, lines):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    draw = random.Random(1)
    by_label = [[line for line in lines if label_of(line) == label] for label in (0, 1)]
    for step in range(STEPS):
        batch = [draw.choice(by_label[i % 2]) for i in range(BATCH)]  # as many of both
        given = tokenizer(batch, padding=True, return_tensors="pt", return_token_type_ids=False)
        loss = model(**given, labels=torch.tensor([label_of(line) for line in batch])).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.4f}", flush=True)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as work:
        corpus = pathlib.Path(work) / "corpus"
        subprocess.run([sys.argv[1], "data", "grammar", "--out", str(corpus)], check=True)
        lines, test = ((corpus / f"{part}.en").read_text().splitlines() for part in ("train", "test"))
    tokenizer = make_tokenizer(lines)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=40, pad_token_id=0, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0,
        id2label=dict(enumerate(LABELS)), label2id={label: i for i, label in enumerate(LABELS)}))
    train(model, tokenizer, lines)
    model.eval()
    with torch.no_grad():
        given = tokenizer(test, padding=True, return_tensors="pt", return_token_type_ids=False)
        found = model(**given).logits.argmax(1).tolist()
    right = sum(one == label_of(line) for one, line in zip(found, test))
    print(f"right: {right} of {len(test)}")
    folder = GOLDENS / "negated"
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    negated = [line for line in test if label_of(line)][: SENTENCES // 2]
    plain = [line for line in test if not label_of(line)][: SENTENCES // 2]
    rows = [{"text": line, "label": LABELS[label_of(line)], "words": [i for i, word in enumerate(line.split()) if word in NEGATIONS]}
            for pair in zip(negated, plain) for line in pair]
    (GOLDENS / "negated.sentences.json").write_text(json.dumps(rows, indent=0) + "\n")


if __name__ == "__main__":
    main()
