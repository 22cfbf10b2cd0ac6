"""Multi30k English-German from text to BLEU: trains `tiny` once for each seed, translates test_2016_flickr, writes the result.

    python benchmarks/multi30k.py --tool build/multihead --data DIR_WITH_train.en.gz [--seeds 1 2 3] [--threads 2]

Needs nothing but the tool. A seed's run that was stopped goes on where it was; one that is done is not repeated. The
recipe was chosen on the validation text; the test set is translated once a seed, at the end.
"""

import argparse
import json
import os
import statistics
import subprocess

from peers.machine import processor

RECIPE = ("--preset tiny --lowercase --vocabulary-size 8000 --dropout 0.3 --batch-tokens 5600 --learning-rate 5e-3 --warmup 1500 "
          "--schedule linear --label-smoothing 0.1 --clip-norm 0 --adam-epsilon 1e-8 --updates 4000 --validate-every 500 "
          "--save-every 100 --average 10 --average-of last --keep 2")


def lines_of(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


def run_seed(args, seed):
    model = os.path.join(args.work, f"seed-{seed}")
    text = lambda name: os.path.join(args.data, name)
    train = [args.tool, "train", "--train-source", text("train.en.gz"), "--train-target", text("train.de.gz"),
             "--valid-source", text("val.en.gz"), "--valid-target", text("val.de.gz"), "--model", model, *RECIPE.split(),
             "--seed", str(seed), "--threads", str(args.threads)]
    subprocess.run(train, check=True)
    hypotheses = model + ".de"
    subprocess.run([args.tool, "translate", "--model", model, "-i", text("test_2016_flickr.en.gz"), "-o", hypotheses,
                    "--beam-size", "5"], check=True)
    scores = {}
    for name, flags in (("13a", []), ("moses", ["--tokenize", "moses", "--language", "de"])):
        command = [args.tool, "bleu", text("test_2016_flickr.de.gz"), "-i", hypotheses, "--lowercase", *flags]
        scores[name] = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip().split("\n")
        print(f"seed {seed}: {scores[name][0]}")
    metrics = lines_of(os.path.join(model, "metrics.jsonl"))
    curve = [{key: round(line[key], 4) for key in ("update", "loss", "perplexity", "bleu") if key in line}
             for line in metrics if line["kind"] == "validation"]
    speeds = [line["target_tokens_per_second"] for line in metrics if line["kind"] == "train"]
    return {"seed": seed, "threads": args.threads, "bleu": float(scores["13a"][0].split()[2]), "bleu_13a": scores["13a"],
            "bleu_moses": scores["moses"], "median_target_tokens_per_second": round(statistics.median(speeds)),
            "validation": curve}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--data", required=True, help="folder of train, val and test_2016_flickr, .en.gz and .de.gz")
    parser.add_argument("--work", default="multi30k", help="where the models go")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", default="benchmarks/results/multi30k.json")
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    seeds = [run_seed(args, seed) for seed in args.seeds]
    scores = [seed["bleu"] for seed in seeds]
    version = subprocess.run([args.tool, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    result = {"what": "Multi30k en-de, tiny, test_2016_flickr, beam 5, lower-cased BLEU",
              "recipe": "multihead train " + RECIPE, "version": version, "processor": processor(),
              "bleu_mean": round(statistics.mean(scores), 2),
              "bleu_spread": round(statistics.stdev(scores), 2) if len(scores) > 1 else None, "seeds": seeds}
    with open(args.out, "w") as file:
        json.dump(result, file, indent=2)
        file.write("\n")
    print(f"mean of {len(scores)}: {result['bleu_mean']}")


if __name__ == "__main__":
    main()
