"""Makes tests/goldens/labels/pair_attributions.json: which tokens of two texts count for the logit of a label, as the gradient times
what the first layer reads, computed by torch in double precision of the classifiers that label_goldens.py made.

  scripts/python torch transformers tokenizers && .venv/bin/python tests/oracles/pair_attribution_goldens.py
"""

import json
import pathlib

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "goldens" / "labels"
TEXT, PAIR = "the cat sees a small, odd house!", "two dogs"


def explained(name, label):
    tokenizer = AutoTokenizer.from_pretrained(GOLDENS / name)
    model = AutoModelForSequenceClassification.from_pretrained(GOLDENS / name, dtype=torch.float64).eval()
    inputs = tokenizer(TEXT, PAIR, return_tensors="pt")
    if model.config.type_vocab_size == 1:
        inputs.pop("token_type_ids", None)
    read = []

    def keep(_, __, output):
        output.retain_grad()
        read.append(output)

    model.base_model.embeddings.register_forward_hook(keep)
    number = model.config.label2id[label]
    logit = model(**inputs).logits[0, number]
    logit.backward()
    scores = (read[0].grad * read[0]).sum(-1)[0]
    return {"model": name, "label": label, "score": logit.item(), "ids": inputs["input_ids"][0].tolist(), "scores": scores.tolist()}


def main():
    rows = [explained("bert_pairs", "neutral"), explained("roberta_texts", "fear")]
    found = {"text": TEXT, "pair": PAIR, "rows": rows}
    (GOLDENS / "pair_attributions.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
