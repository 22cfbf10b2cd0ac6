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
FOLDERS = ["bart/plain", "bart/scaled_bf16", "mbart/plain", "marian/relu", "t5/plain"]
SENTENCES = 3
LONGEST = 16  # tokens, the start token counted


def cases(end):
    """A name, and the keys of generation_config.json beside ids, the longest length and the number of beams."""
    for n in (1, 2, 3):
        yield f"no_repeat_{n}", dict(no_repeat_ngram_size=n, early_stopping=True)
    yield "usual", {}
    yield "full", dict(early_stopping=True)
    yield "short", dict(length_penalty=-2.0)
    yield "long", dict(length_penalty=3.0, early_stopping=False)
    yield "never", dict(length_penalty=3.0, early_stopping="never")
    yield "never_short", dict(length_penalty=-1.5, early_stopping="never")
    yield "min_length", dict(min_length=11)
    yield "min_new_tokens", dict(min_new_tokens=7, min_length=3, early_stopping=True)
    yield "forced_end", dict(max_length=7, forced_eos_token_id=end, early_stopping=True)
    yield "all", dict(max_new_tokens=11, min_length=5, forced_eos_token_id=[end], length_penalty=0.5, no_repeat_ngram_size=2,
                      early_stopping="never")


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
            input_ids=torch.tensor([source]), num_beams=beams, use_cache=model.config.model_type != "t5",  # its cache wants equal stacks
            do_sample=False, return_dict_in_generate=True, output_scores=True,
            **(dict(max_length=LONGEST) | options | more))
        ids = [sequence[1:].tolist() for sequence in answer.sequences]
        hypotheses = [dict(tokens=one[: one.index(end)] if end in one else one, ended=end in one) for one in ids]
        if beams > 1:
            for hypothesis, score in zip(hypotheses, answer.sequences_scores.tolist()):
                hypothesis["score"] = round(score, 6)
        all_found.append(hypotheses)
    return all_found


def main():
    torch.set_num_threads(1)  # the models are small
    made = []
    for folder in FOLDERS:
        model = AutoModelForSeq2SeqLM.from_pretrained(GOLDENS / folder, dtype=torch.float64, attn_implementation="eager").eval()
        model.generation_config.forced_eos_token_id = None
        sources = sources_of(folder)[:SENTENCES]
        usual = {beams: found_by(model, sources, beams, {}) for beams in range(1, 6)}
        for name, options in cases(model.generation_config.eos_token_id):
            changed = 0
            for beams, found_usually in usual.items():
                found = found_by(model, sources, beams, options) if options else found_usually
                changed += found != found_usually
                made.append(dict(folder=folder, name=name, beams=beams, options=options, found=found))
            print(f"{folder} {name}: {changed} of 5 beams find other words")
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDENS / "bart" / "searches.json"
    path.write_text("[\n" + ",\n".join(json.dumps(one, separators=(",", ":")) for one in made) + "\n]\n")


if __name__ == "__main__":
    main()
