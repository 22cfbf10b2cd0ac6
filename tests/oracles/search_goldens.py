"""Makes tests/goldens/bart/searches.json: what transformers finds with the small translators of tests/goldens (translator_goldens.py,
marian_goldens.py) in double precision for settings of a search, all hypotheses of a beam with their scores.

  scripts/python torch transformers safetensors && .venv/bin/python tests/oracles/search_goldens.py [FILE]
"""

import json
import pathlib
import sys

import torch
from safetensors.numpy import load_file
from transformers import AutoModelForSeq2SeqLM

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "goldens"
FOLDERS = ["bart/plain", "bart/scaled_bf16", "mbart/plain", "marian/relu"]


def cases():
    """A name, and the options of generate() beside the number of beams."""
    for n in (1, 2, 3):
        yield f"no_repeat_{n}", dict(no_repeat_ngram_size=n)


def sources_of(folder):
    golden = load_file(GOLDENS / f"{folder}.golden.safetensors")
    ids = iter(golden["source"].tolist())
    return [[next(ids) for _ in range(length)] for length in golden["source_lengths"]]


def found_by(model, sources, beams, options):
    """For each source its hypotheses: tokens without start and end token, whether they ended, and scores."""
    end = model.generation_config.eos_token_id
    all_found = []
    for source in sources:
        more = {} if beams == 1 else dict(num_return_sequences=beams)
        answer = model.generate(
            input_ids=torch.tensor([source]), num_beams=beams, do_sample=False, return_dict_in_generate=True, output_scores=True,
            **(dict(max_new_tokens=15, early_stopping=beams > 1) | options | more))
        ids = [sequence[1:].tolist() for sequence in answer.sequences]
        hypotheses = [dict(tokens=one[: one.index(end)] if end in one else one, ended=end in one) for one in ids]
        if beams > 1:
            for hypothesis, score in zip(hypotheses, answer.sequences_scores.tolist()):
                hypothesis["score"] = round(score, 6)
        all_found.append(hypotheses)
    return all_found


def main():
    made = []
    for folder in FOLDERS:
        model = AutoModelForSeq2SeqLM.from_pretrained(GOLDENS / folder, dtype=torch.float64, attn_implementation="eager").eval()
        model.generation_config.forced_eos_token_id = None
        sources = sources_of(folder)
        for name, options in cases():
            changed = 0
            for beams in range(1, 6):
                found = found_by(model, sources, beams, options)
                changed += found != found_by(model, sources, beams, {})
                made.append(dict(folder=folder, name=name, beams=beams, options=options, found=found))
            print(f"{folder} {name}: {changed} of 5 beams find other words")
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDENS / "bart" / "searches.json"
    path.write_text("[\n" + ",\n".join(json.dumps(one, separators=(",", ":")) for one in made) + "\n]\n")


if __name__ == "__main__":
    main()
