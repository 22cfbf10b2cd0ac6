"""python scripts/answers_runs.py MODELS DEMO CONLLU GRAMMAR OUT [TEXTS]: makes the JSON behind one-softmax, rank, inputs and alike-muted of
docs/heads/results. What is in OUT is not computed again. TEXTS: so many of each model alone, for a trial."""

import json
import sys
import time
from pathlib import Path

from alike_muted import alike_muted
from head_inputs import inputs
from head_rank import rank
from one_softmax import one_softmax
from real_models import case

RUNS = {"one_softmax": one_softmax, "rank": rank, "inputs": inputs, "alike_muted": alike_muted}
MODELS = {"demo": ("one_softmax", "rank"), "minilm": tuple(RUNS), "smollm2": ("inputs", "rank", "one_softmax", "alike_muted")}  # the shorter runs first


def main(models, demo, conllu, grammar, out, texts=0):
    for name, runs in MODELS.items():
        asked = None
        for run in runs:
            path = Path(out, f"{run}_{name}.json")
            if path.exists():
                continue
            asked = asked or case(name, models, demo, conllu, grammar, out, short=int(texts))
            begun = time.monotonic()
            report = RUNS[run](asked)
            part = path.with_suffix(".part")
            part.write_text(json.dumps(report))
            part.rename(path)
            print(f"{path.name}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
