"""What a model loses without one of the two most alike heads of a layer, beside its other heads. scripts/answers_models runs it; what is
done exactly is said in docs/heads/results/README.md."""

import multihead as mh
import numpy as np

SCORED = {"minilm": 200, "smollm2": 20}


def alike_muted(case):
    """By attention: the two heads with the smallest ratio of divergence to chance, the ratio, and what the score loses without each head."""
    texts = [text for text, _ in case.texts[: SCORED[case.name]]]
    others = [text for text, _ in case.other_texts]  # which pair it is, is chosen on other text
    found = {}
    for kind in mh.heads.similar(case.model, others).report["kinds"]:
        names = [head["head"] for head in kind["heads"]]
        ratios = np.array(kind["divergence"]) / np.array(kind["null_divergence"])
        for attention in case.attentions:
            inside = [i for i, name in enumerate(names) if name.rsplit(".", 1)[0] == attention.name]
            pairs = [(float(ratios[i, j]), names[i], names[j]) for i in inside for j in inside if i < j]
            if pairs:
                found[attention.name] = min(pairs)
    lost = {row["head"]: row["importance"] for row in mh.heads.importance(case.model, texts, by="ablation").report["heads"]}
    return {"texts": len(texts), "other_texts": len(others), "pairs": found, "lost": lost}
