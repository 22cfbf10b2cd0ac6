"""Makes docs/pictures/cross_attention_t5.svg and cross_attention_bart.svg: a small random T5 and BART, as transformers saves them,
are trained further by `multihead train --init-from` on the built-in grammar, and the heads of cross-attention that align words best
are drawn.

  scripts/python torch transformers tokenizers safetensors && .venv/bin/python scripts/cross_attention_pictures.py BUILD WORK

WORK keeps the folders: random models, corpus and trained models; what is there is not made again. Ten minutes on two cores.
"""

import collections
import itertools
import json
import math
import subprocess
import sys
from pathlib import Path

import tokenizers
import torch
from tokenizers import decoders, models, pre_tokenizers, processors
from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

PICTURES = Path(__file__).resolve().parents[1] / "docs/pictures"
TEXTS = dict(T5="strict brothers cooked no eggs which are green .", BART="I will trust the extremely black horse which played .")
UPDATES = dict(T5=3000, BART=1500)
SPECIALS = ["<pad>", "</s>", "<unk>", "<s>"]
SIZES = dict(T5=dict(d_model=128, d_kv=32, d_ff=512, num_layers=2, num_heads=4, dropout_rate=0.1),
             BART=dict(d_model=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                       encoder_ffn_dim=512, decoder_ffn_dim=512, max_position_embeddings=64, dropout=0.1))  # fmt: skip


def tokenizer_of(corpus, frame):
    """Whole words of the grammar, with ▁ before each; `frame` is the template around a text."""
    counts = collections.Counter(word for ending in ("en", "de") for word in (corpus / f"train.{ending}").read_text().split())
    words = [(f"▁{word}", math.log(count / counts.total())) for word, count in counts.most_common()]
    made = tokenizers.Tokenizer(models.Unigram([(token, 0.0) for token in SPECIALS] + words, unk_id=2))
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    made.decoder = decoders.Metaspace()
    made.add_special_tokens(SPECIALS)
    made.post_processor = processors.TemplateProcessing(single=frame, pair=f"{frame} $B:0 </s>",
                                                        special_tokens=[("<s>", 3), ("</s>", 1)])  # fmt: skip
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", bos_token="<s>",
                                   model_max_length=64)  # fmt: skip


def save_random(kind, corpus, folder):
    torch.manual_seed(1)
    tokenizer = tokenizer_of(corpus, "$A </s>" if kind == "T5" else "<s> $A </s>")
    ids = dict(vocab_size=len(tokenizer), pad_token_id=0, eos_token_id=1, bos_token_id=3)
    if kind == "T5":
        model = T5ForConditionalGeneration(T5Config(**ids, decoder_start_token_id=0, **SIZES[kind]))
    else:
        model = BartForConditionalGeneration(BartConfig(
            **ids, decoder_start_token_id=1, forced_bos_token_id=3, forced_eos_token_id=1, **SIZES[kind]))  # fmt: skip
    model.generation_config.update(num_beams=5, early_stopping=True, max_length=64)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main():
    tool, work = Path(sys.argv[1]) / "multihead", Path(sys.argv[2])

    def run(*words):
        return subprocess.run([str(tool), *map(str, words)], check=True, stdout=subprocess.PIPE, text=True).stdout

    corpus = work / "corpus"
    if not corpus.exists():
        run("data", "grammar", "--out", corpus)
    test = [corpus / f"test.{ending}" for ending in ("en", "de", "align")]
    for kind in SIZES:
        random, trained = work / f"random-{kind}", work / kind
        if not (random / "config.json").exists():
            save_random(kind, corpus, random)
        if not (trained / "model.safetensors").exists():
            recipe = ("--updates", UPDATES[kind], "--batch-tokens", 3000, "--learning-rate", 1e-3, "--warmup", 400, "--max-length", 60)
            texts = [(f"--{part}-{side}", corpus / f"{part}.{ending}")
                     for part in ("train", "valid") for side, ending in (("source", "en"), ("target", "de"))]  # fmt: skip
            run("train", "--model", trained, "--init-from", random, *itertools.chain(*texts), *recipe, "--validate-every", 500)
        found = run("heads", "alignment", trained, "-i", test[0], "--target", test[1], "--alignment", test[2], "--json")
        heads = json.loads(found)
        (work / f"{kind}.json").write_text(json.dumps(heads, indent=1))
        best = min((row for row in heads["alignment"] if row["query"] == "predicts" and not row["head"].endswith("mean")),
                   key=lambda row: row["error_rate"])  # fmt: skip
        print(kind, run("translate", trained, "-i", test[0], "-o", work / f"{kind}.de"), best["head"])
        picture = PICTURES / f"cross_attention_{kind.lower()}.svg"
        run("heads", trained, "--text", TEXTS[kind], "--head", best["head"], "--svg", picture)


if __name__ == "__main__":
    main()
