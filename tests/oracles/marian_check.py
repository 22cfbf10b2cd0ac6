"""Opens a folder that multihead wrote with transformers and compares what both compute.

    venv/bin/python tests/oracles/marian_check.py FOLDER EXPECTED.safetensors [TEXTS.json]

EXPECTED holds what multihead computed: source, target_in, greedy (ids and NAME_lengths), logits [N, V].
TEXTS is a list of {"text": ..., "ids": [...], "decoded": ...} by multihead's tokenizer. The test
SlowMarianOracle in tests/models writes all of them and runs this when MULTIHEAD_PYTHON names a Python with
torch and transformers.
"""

import json
import sys

import torch
import transformers
from safetensors.numpy import load_file
from transformers import AutoTokenizer, MarianMTModel


def lists(tensors, name):
    ids, result, at = tensors[name].tolist(), [], 0
    for length in tensors[name + "_lengths"].tolist():
        result.append(ids[at : at + length])
        at += length
    return result


def check(condition, message):
    if not condition:
        sys.exit(f"marian_check: {message}")


def main():
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    folder, expected = sys.argv[1], load_file(sys.argv[2])
    model, info = MarianMTModel.from_pretrained(folder, output_loading_info=True)
    model.eval()
    for kind, found in info.items():
        check(not found, f"{kind}: {found}")
    pad, eos = model.config.pad_token_id, model.config.eos_token_id

    sources, targets = lists(expected, "source"), lists(expected, "target_in")
    found = []
    with torch.no_grad():
        for source, target in zip(sources, targets):
            found.append(
                model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target])).logits[0]
            )
    difference = (torch.cat(found) - torch.from_numpy(expected["logits"])).abs().max().item()
    check(difference < 1e-4, f"logits differ by {difference}")

    longest = max(map(len, sources))
    ids = torch.tensor([source + [pad] * (longest - len(source)) for source in sources])
    mask = torch.tensor([[1] * len(source) + [0] * (longest - len(source)) for source in sources])
    limit = max(map(len, lists(expected, "greedy")))
    answers = model.generate(
        input_ids=ids, attention_mask=mask, num_beams=1, do_sample=False, max_new_tokens=limit
    )
    for row, greedy in zip(answers[:, 1:].tolist(), lists(expected, "greedy")):
        check(row[: len(greedy)] == greedy, f"generate() gave {row}, multihead {greedy}")
        check(
            all(token in (pad, eos) for token in row[len(greedy) :]), f"generate() went on: {row}, {greedy}"
        )

    texts = json.load(open(sys.argv[3])) if len(sys.argv) > 3 else []
    if texts:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        check(tokenizer.eos_token_id == eos and tokenizer.pad_token_id == pad, "special tokens differ")
        for item in texts:
            ids = tokenizer(item["text"])["input_ids"]
            check(ids == item["ids"], f"AutoTokenizer gave {ids} for {item}")
            decoded = tokenizer.decode(ids, skip_special_tokens=True)
            check(decoded == item["decoded"], f"AutoTokenizer decoded {decoded!r} for {item}")
        batch = tokenizer([item["text"] for item in texts], return_tensors="pt", padding=True)
        model.generate(**batch, max_length=12)  # with the folder's own settings: beams
    print(
        f"marian_check: {folder}: logits within {difference:.2g}, {len(sources)} greedy translations and "
        f"{len(texts)} texts the same"
    )


if __name__ == "__main__":
    main()
