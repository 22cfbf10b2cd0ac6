"""Makes tests/goldens/training.json: the losses of the updates by which transformers and torch train the tiny translators of other
goldens further, in double precision. Every update reads all pairs: texts, which the folder's own tokenizer encodes (labels from
text_target, decoder inputs from labels as the class makes them), or the token ids of the folder's golden.

  scripts/python torch transformers tokenizers safetensors numpy && .venv/bin/python tests/oracles/training_goldens.py [FILE]
"""

import json
import pathlib
import sys

import torch
import transformers
from safetensors.numpy import load_file
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

GOLDENS = pathlib.Path(__file__).resolve().parents[1] / "goldens"
PAIRS = [
    ("the small dog sees a cat.", "a cat sees the small dog."),
    ("two dogs run in the park", "in the park run two dogs"),
    ("a", "the park"),
    ("the cats see the dogs", "dogs see cats"),
    ("run", "runs, and runs"),
    ("", "a dog"),
    ("the dog runs, and the cat sees it.", "it runs."),
]
# Folder: languages of the texts, none where it has no codes; what comes before each source; updates.
OF_TEXTS = {
    "bart/text": (None, "", 200),
    "t5/text": (None, "cat: ", 200),
    "languages/mbart": (("en_XX", "de_DE"), "", 60),
    "languages/mbart50": (("en_XX", "gl_ES"), "", 60),
    "languages/nllb": (("eng_Latn", "zho_Hant"), "", 60),
    "languages/nllb_legacy": (("eng_Latn", "deu_Latn"), "", 60),
}
OF_IDS = [
    "marian/relu", "marian/swish_bf16_separate", "marian/silu_untied", "bart/scaled_bf16", "bart/untied_f16", "mbart/scaled_bf16",
    "m2m_100/plain", "m2m_100/untied", "t5/buckets", "t5/untied_f16", "t5/flan_bf16", "mt5/plain", "mt5/untied_bf16", "umt5/plain",
    "umt5/unscaled",
]  # fmt: skip
UPDATES_OF_IDS = 40
RECIPE = dict(peak=2e-4, warmup=7, beta1=0.9, beta2=0.98, epsilon=1e-6, clip_norm=1.0, label_smoothing=0.1)


def learning_rate(update):
    warmup = RECIPE["warmup"]
    return RECIPE["peak"] * min(update / warmup, (warmup / update) ** 0.5)


def padded(lists, pad):
    longest = max(map(len, lists))
    return torch.tensor([ids + [pad] * (longest - len(ids)) for ids in lists])


torch.set_num_threads(1)  # of products this small


def losses(folder, sources, labels, updates):
    """Of each update before it is made."""
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()  # no dropout
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding) and model.config.model_type == "marian":
            module.padding_idx = None  # torch drops that row's gradient, though the decoder starts with it
            if "Sinusoidal" in type(module).__name__:
                module.requires_grad_(False)  # as its class says, which from_pretrained() forgets
    ids, wanted = padded(sources, model.config.pad_token_id), padded(labels, -100)
    mask = padded([[1] * len(source) for source in sources], 0)
    parameters = [p for p in model.parameters() if p.requires_grad]
    adam = torch.optim.Adam(parameters, betas=(RECIPE["beta1"], RECIPE["beta2"]), eps=RECIPE["epsilon"])
    found = []
    for update in range(1, updates + 1):
        for group in adam.param_groups:
            group["lr"] = learning_rate(update)
        logits = model(input_ids=ids, attention_mask=mask, labels=wanted).logits
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), wanted.flatten(), ignore_index=-100, label_smoothing=RECIPE["label_smoothing"])
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, RECIPE["clip_norm"])
        adam.step()
        found.append(round(loss.item(), 6))
    return found


def of_texts(name):
    languages, prefix, updates = OF_TEXTS[name]
    folder = GOLDENS / name
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if languages:
        tokenizer.src_lang, tokenizer.tgt_lang = languages
    sources = [tokenizer(prefix + source if source else "")["input_ids"] for source, _ in PAIRS]
    labels = [tokenizer(text_target=target)["input_ids"] for _, target in PAIRS]
    made = dict(prefix=prefix, losses=losses(folder, sources, labels, updates))
    return made | dict(zip(("source", "target"), languages or ("", "")))


def lists_of(golden, name):
    ids, lists = golden[name].tolist(), []
    for length in golden[name + "_lengths"].tolist():
        lists.append(ids[:length])
        ids = ids[length:]
    return lists


def of_ids(name):
    golden = load_file(GOLDENS / f"{name}.golden.safetensors")
    return dict(losses=losses(GOLDENS / name, lists_of(golden, "source"), lists_of(golden, "target_out"), UPDATES_OF_IDS))


def main():
    transformers.utils.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()
    file = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDENS / "training.json"
    made = dict(recipe=RECIPE, pairs=PAIRS, texts={}, ids={})
    for kind, names, make in (("texts", OF_TEXTS, of_texts), ("ids", OF_IDS, of_ids)):
        for name in names:
            made[kind][name] = make(name)
            found = made[kind][name]["losses"]
            print(f"{name}: {found[0]} to {found[-1]}")
    file.write_text(json.dumps(made, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
