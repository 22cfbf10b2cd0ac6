"""Makes tests/goldens/fill: a small random BertForMaskedLM with a WordPiece tokenizer and a RobertaForMaskedLM with a
byte-level one, as save_pretrained writes them, and expected.json: what transformers' fill-mask pipeline says with them.

    python -m venv venv && venv/bin/pip install torch transformers tokenizers
    venv/bin/python tests/oracles/fill_goldens.py [FOLDER]
"""

import json
import pathlib
import shutil
import sys

import torch
from tokenizers import ByteLevelBPETokenizer, BertWordPieceTokenizer, Tokenizer, processors
from tokenizers import AddedToken
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast, RobertaConfig, RobertaForMaskedLM, pipeline

TEXT = [
    "Paris is the capital of France.",
    "The small dogs run in the garden, and the cats see them.",
    "Is the sky blue? The garden is green.",
    "A café in the heart of the city.",
]


def special_tokens(tokenizer, names, **more):
    return PreTrainedTokenizerFast(
        **more,
        tokenizer_object=tokenizer, unk_token=names[0], cls_token=names[1], sep_token=names[2], pad_token=names[3],
        mask_token=AddedToken(names[4], lstrip=names[4] == "<mask>", special=True),
    )


def bert_tokenizer():
    tokenizer = BertWordPieceTokenizer(lowercase=True)
    tokenizer.train_from_iterator(TEXT, vocab_size=131, min_frequency=1, show_progress=False)
    inner = Tokenizer.from_str(tokenizer.to_str())
    cls, sep = inner.token_to_id("[CLS]"), inner.token_to_id("[SEP]")
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", cls), ("[SEP]", sep)]
    )
    # Without these names transformers 5 gives a pair no types.
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return special_tokens(inner, ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"], model_input_names=inputs)


def roberta_tokenizer():
    tokenizer = ByteLevelBPETokenizer()
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer.train_from_iterator(TEXT, vocab_size=293, min_frequency=1, special_tokens=names, show_progress=False)
    inner = Tokenizer.from_str(tokenizer.to_str())
    inner.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return special_tokens(inner, ["<unk>", "<s>", "</s>", "<pad>", "<mask>"])


def make(folder, name, tokenizer, kind, config):
    torch.manual_seed(len(name))
    model = kind(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(folder / name)
    tokenizer.save_pretrained(folder / name)
    mask = tokenizer.mask_token
    texts = [
        f"Paris is the {mask} of France.",
        f"The {mask} dogs {mask} in the garden.",
        mask,
        f"{mask} sky {mask}{mask} a café?",
    ]
    fill = pipeline("fill-mask", model=model.double(), tokenizer=tokenizer)
    answers = []
    for text in texts:
        found = fill(text, top_k=7)
        masks = found if isinstance(found[0], list) else [found]
        words = [[{"token": w["token"], "score": w["score"], "word": w["token_str"].lstrip(" ")} for w in one] for one in masks]
        answers.append({"text": text, "masks": words})
    return answers


def main():
    here = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "fill"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sizes = dict(hidden_size=20, num_hidden_layers=2, num_attention_heads=5, intermediate_size=23,
                 attn_implementation="eager")
    bert, roberta = bert_tokenizer(), roberta_tokenizer()
    expected = {
        "bert": make(folder, "bert", bert, BertForMaskedLM,
                     BertConfig(vocab_size=len(bert), max_position_embeddings=37, pad_token_id=bert.pad_token_id, **sizes)),
        "roberta": make(folder, "roberta", roberta, RobertaForMaskedLM,
                        RobertaConfig(vocab_size=len(roberta), max_position_embeddings=41, type_vocab_size=1,
                                      pad_token_id=1, bos_token_id=0, eos_token_id=2, **sizes)),
    }
    (folder / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
