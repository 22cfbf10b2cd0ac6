"""Makes tests/goldens/tokenizer_config: small tokenizers, and what AutoTokenizer of transformers 5 makes of each with a
tokenizer_config.json, special_tokens_map.json and added_tokens.json that say something of it. cases.json has for each case the
files, the ids of LINES, a decoded text, a text that is cut, and a pair of texts; or "as", an earlier case that has the same.

    venv/bin/python tests/oracles/tokenizer_config_goldens.py [--against FOLDER]

With --against nothing is written: the cases of that folder are answered by the transformers of this venv, e.g. 4.57, and those
whose ids differ are printed.
"""

import json
import os
import pathlib
import sys
import tempfile

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_OFFLINE"] = "1"

import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer

GOLDENS = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "tokenizer_config"
TEXT = [
    "the small dog sees a cat in the garden .",
    "Two Dogs run over the green hill and a cat sleeps .",
    "She buys 3 red apples, 12 pears and 150 nuts; isn't it much?",
    "Ich sehe die großen Hunde über den Hügel laufen.",
    "Café crème, naïve façade - déjà vu!",
    "  spaces   are here  ",
] * 3
LINES = [
    "the small Dog",
    "Café crème 漢字 x",
    "buys 150 nuts",
    "<ent> dog a<s>b [SEP] c </s> <unk> d",
    "  two  spaces ",
    "it is n't , done .",
    "ﬁne ｄog <b>a <z> [MASK] the themes",
]
LONG = "the small dog sees a cat in the green garden"
PAIR = ("the dog", "a cat")
LONG_PAIR = ("the small dog sees a cat", "two dogs run over the green hill and sleep")


def added(content, **flags):
    plain = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    return {"content": content, **plain, **flags}


def word_piece(lower):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(
        TEXT, trainers.WordPieceTrainer(vocab_size=199, special_tokens=names, initial_alphabet=list("DTCSIéèïç漢字"))
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer


def byte_level(names, roberta, digits=False):
    tokenizer = Tokenizer(models.BPE())
    steps = [pre_tokenizers.Digits(individual_digits=True)] if digits else []
    words = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*steps, words]) if steps else words
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        TEXT, trainers.BpeTrainer(vocab_size=331, special_tokens=names, initial_alphabet=alphabet)
    )
    if roberta:
        tokenizer.post_processor = processors.RobertaProcessing(
            ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False
        )
    return tokenizer


def llama():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(content=" ", left=1)]
    )
    names = ["<unk>", "<s>", "</s>"]
    bytes_of_text = [f"<0x{i:02X}>" for i in range(256)]
    tokenizer.train_from_iterator(
        TEXT, trainers.BpeTrainer(vocab_size=401, special_tokens=names + bytes_of_text)
    )
    document = json.loads(tokenizer.to_str())
    document["added_tokens"] = [token for token in document["added_tokens"] if token["id"] < 3]
    tokenizer = Tokenizer.from_str(json.dumps(document))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)]
    )
    return tokenizer


def gemma():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    names = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "▁▁", "▁▁▁"]
    bytes_of_text = [f"<0x{i:02X}>" for i in range(256)]
    tokenizer.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=401, special_tokens=names + bytes_of_text))
    document = json.loads(tokenizer.to_str())
    document["added_tokens"] = [added(t["content"], id=t["id"], special=t["id"] < 5) for t in document["added_tokens"][:7]]
    tokenizer = Tokenizer.from_str(json.dumps(document))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A <bos>:1 $B:1", special_tokens=[("<bos>", 2)]
    )
    return tokenizer


def gpt_neox():
    tokenizer = byte_level(["<|endoftext|>", "<|padding|>"], False)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.post_processor = processors.ByteLevel(add_prefix_space=False)
    tokenizer.add_tokens([AddedToken(" " * n, normalized=True) for n in (4, 3, 2)])
    return tokenizer


def unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    tokenizer.decoder = decoders.Metaspace()
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer.train_from_iterator(
        TEXT, trainers.UnigramTrainer(vocab_size=97, special_tokens=names, unk_token="<unk>")
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer


BERT = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]", "mask_token": "[MASK]"}
ROBERTA = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "cls_token": "<s>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}
GPT2 = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}
GPT_NEOX = {**GPT2, "pad_token": "<|padding|>"}
GEMMA = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>", "unk_token": "<unk>"}
LLAMA = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}

# name: (tokenizer, model_type, tokenizer_config.json, tokenizer_class)
TOKENIZERS = {
    "word_piece": (lambda: word_piece(True), "bert", BERT, [None, "BertTokenizerFast", "DistilBertTokenizer"]),
    "word_piece_cased": (lambda: word_piece(False), "mpnet", BERT, ["BertTokenizer", "MPNetTokenizer"]),
    "byte_level": (
        lambda: byte_level(list(dict.fromkeys(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])), True),
        "roberta",
        ROBERTA,
        [None, "RobertaTokenizerFast", "GPT2Tokenizer"],
    ),
    "digits": (lambda: byte_level(["<|endoftext|>"], False, True), "llama", GPT2, [None, "GPT2Tokenizer", "Qwen2Tokenizer"]),
    "llama": (llama, "llama", LLAMA, [None, "LlamaTokenizer"]),
    "gemma": (gemma, "gemma2", GEMMA, [None]),
    "gpt_neox": (gpt_neox, "gpt_neox", GPT_NEOX, [None, "CodeGenTokenizer"]),
    "unigram": (unigram, "xlm-roberta", ROBERTA, [None, "XLMRobertaTokenizer", "CamembertTokenizer"]),
}
# What is said in tokenizer_config.json besides.
SAID = {
    "nothing": {},
    "do_lower_case": {"do_lower_case": False},
    "do_lower_case true": {"do_lower_case": True},
    "strip_accents": {"strip_accents": False},
    "tokenize_chinese_chars": {"tokenize_chinese_chars": False},
    "add_prefix_space": {"add_prefix_space": True},
    "add_prefix_space false": {"add_prefix_space": False},
    "add_bos_token false": {"add_bos_token": False},
    "add_eos_token": {"add_eos_token": True},
    "legacy": {"legacy": True},
    "clean_up_tokenization_spaces": {"clean_up_tokenization_spaces": True},
    "truncation_side": {"truncation_side": "left"},
    "split_special_tokens": {"split_special_tokens": True},
    "trim_offsets": {"trim_offsets": False},
    "padding_side": {"padding_side": "left"},
    "model_max_length": {"model_max_length": 7},
    "model_input_names": {"model_input_names": ["input_ids", "attention_mask"]},
    "another unk_token": {"unk_token": "a"},
    "extra_special_tokens list": {"extra_special_tokens": ["<ent>"]},
    "extra_special_tokens names": {"extra_special_tokens": {"ent_token": "<ent>"}},
    "additional_special_tokens": {"additional_special_tokens": ["<ent>", "<b>"]},
    "a token of its own": {"ent_token": "<ent>"},
    # what changes nothing
    "names": {
        "name_or_path": "x",
        "special_tokens_map_file": "y",
        "processor_class": "Z",
        "do_basic_tokenize": False,
        "never_split": ["dog"],
        "wordpieces_prefix": "@@",
        "clean_text": False,
        "errors": "strict",
        "spaces_between_special_tokens": True,
        "keep_accents": True,
        "remove_space": True,
        "sp_model_kwargs": {"enable_sampling": True},
        "use_default_system_prompt": True,
        "pad_token_type_id": 1,
        "x_y": 3,
    },
}


def files_of(name, said, tokenizer_class, patch=None, **files):
    _, model_type, config, _ = TOKENIZERS[name]
    all_files = {"tokenizer_config.json": {**config, **said}}
    if tokenizer_class is not None:
        all_files["tokenizer_config.json"]["tokenizer_class"] = tokenizer_class
    for file, content in files.items():
        all_files[file.replace("_json", ".json")] = content
    model_type = all_files.pop("model_type", model_type)
    return {"tokenizer": name, "patch": patch or {}, "model_type": model_type, "files": all_files}


def cases():
    for name, (_, _, _, classes) in TOKENIZERS.items():
        for tokenizer_class in [*classes, "PreTrainedTokenizerFast"]:
            for what, said in SAID.items():
                yield f"{name}, {tokenizer_class}, {what}", files_of(name, said, tokenizer_class)
    ent = added("<ent>")
    for tokenizer_class in ["PreTrainedTokenizerFast", "BertTokenizer"]:

        def case(what, said=None, patch=None, **files):
            return f"{tokenizer_class}: {what}", files_of("word_piece", said or {}, tokenizer_class, patch, **files)

        yield case("added_tokens_decoder", {"added_tokens_decoder": {"199": ent}})
        yield case("added_tokens_decoder with a hole", {"added_tokens_decoder": {"210": ent}})
        yield case("of another kind", {"added_tokens_decoder": {"199": added("<ent>", special=False, normalized=True)}})
        three = {"201": added("<b>"), "200": ent, "1000": added("<z>", lstrip=True)}
        yield case("three added", {"added_tokens_decoder": three})
        yield case("a word of the vocabulary", {"added_tokens_decoder": {"7": added("the", special=False)}})
        yield case("other flags", {"added_tokens_decoder": {"4": added("[MASK]", lstrip=True, rstrip=True)}})
        yield case("added_tokens.json", added_tokens_json={"<ent>": 199, "<b>": 205})
        decoder = {"added_tokens_decoder": {"199": added("<b>")}}
        yield case("added_tokens.json beside added_tokens_decoder", decoder, added_tokens_json={"<ent>": 199})
        names = {"additional_special_tokens": ["<ent>"]}
        yield case("special_tokens_map.json", special_tokens_map_json=names)
        yield case("special_tokens_map.json beside added_tokens_decoder", decoder, special_tokens_map_json=names)
        other = {"additional_special_tokens": ["<b>"]}
        yield case("special_tokens_map.json beside additional_special_tokens", other, special_tokens_map_json=names)
        yield case("a new mask token there", special_tokens_map_json={"mask_token": "<ent>"})
        yield case("a new mask token with flags", {"mask_token": {"__type": "AddedToken", **added("<ent>", lstrip=True)}})
        yield case("a word as padding", {"pad_token": "dog"})
        yield case(
            "all of them",
            {"ent_token": "<ent>", "additional_special_tokens": ["<b>"], "bos_token": "<bos>"},
            added_tokens_json={"<z>": 199},
        )
        left = {"truncation": {"direction": "Left", "max_length": 6, "strategy": "LongestFirst", "stride": 0}}
        yield case("truncation of tokenizer.json", patch=left)
        yield case("truncation_side against it", {"truncation_side": "right"}, left)
        yield case("no template", patch={"post_processor": None})
        yield case("another normaliser", patch={"normalizer": {"type": "Lowercase"}})
        yield case("no normaliser", patch={"normalizer": None})
        yield case("another decoder", patch={"decoder": None})
    for what, said in {
        "a decoder that lists some": {"added_tokens_decoder": {"0": added("[PAD]"), "3": added("[SEP]")}},
        "no names": {},
    }.items():
        yield f"BertTokenizer: {what}", files_of("word_piece", said, "BertTokenizer")
    for tokenizer_class in ["PreTrainedTokenizerFast", "RobertaTokenizer"]:
        prefix = {"pre_tokenizer": {"add_prefix_space": True}}
        yield f"{tokenizer_class}: a space in front", files_of("byte_level", {}, tokenizer_class, prefix)
        no = {"post_processor": None}
        yield f"{tokenizer_class}: no template for bytes", files_of("byte_level", {}, tokenizer_class, no)
    other = {"cls_token": "a", "sep_token": "b"}
    yield "RobertaTokenizer: other names", files_of("byte_level", other, "RobertaTokenizer")
    old = {
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            ],
        },
        "pre_tokenizer": None,
    }
    for tokenizer_class in ["PreTrainedTokenizerFast", "LlamaTokenizer"]:
        for said in [{}, {"legacy": True}, {"legacy": False}, {"add_prefix_space": False}]:
            yield f"{tokenizer_class}: as Llama 2 was written, {said}", files_of("llama", said, tokenizer_class, old)
    bos = {"bos_token": "</s>", "add_bos_token": True}
    end = {"SpecialToken": {"id": "</s>", "type_id": 0}}
    first, second = ({"Sequence": {"id": of, "type_id": 0}} for of in "AB")
    tokens = {"</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}}
    step = {"type": "TemplateProcessing", "single": [end, first], "pair": [first, second], "special_tokens": tokens}
    template = {"post_processor": {"sep": None, "cls": None, "trim_offsets": None, "add_prefix_space": None, **step}}
    for model_type in ["opt", "gpt_neox"]:
        for what, patch in {"a template": template, "no template": {"post_processor": None}}.items():
            said = files_of("byte_level", bos, "GPT2Tokenizer" if model_type == "opt" else None, patch, model_type=model_type)
            yield f"{model_type}: add_bos_token, {what}", said
    yield "gemma: no steps", files_of("gemma", {}, None, {"normalizer": None, "pre_tokenizer": None, "post_processor": None})
    for tokenizer_class in ["PreTrainedTokenizerFast", "XLMRobertaTokenizer"]:
        yield f"{tokenizer_class}: no template", files_of("unigram", {}, tokenizer_class, {"post_processor": None})
    # Which class is taken for which model, where the class that is named is another's.
    for model_type, name in [
        ("bert", "word_piece_cased"),
        ("distilbert", "word_piece_cased"),
        ("mpnet", "word_piece_cased"),
        ("modernbert", "word_piece_cased"),
        ("roberta", "byte_level"),
        ("modernbert", "byte_level"),
        ("gpt2", "byte_level"),
        ("llama", "byte_level"),
        ("mistral", "byte_level"),
        ("qwen2", "byte_level"),
        ("qwen3", "byte_level"),
        ("xlm-roberta", "unigram"),
        ("camembert", "unigram"),
        ("llama", "llama"),
        ("mistral", "llama"),
        ("phi3", "llama"),
        ("gemma", "gemma"),
        ("gemma3_text", "gemma"),
        ("gpt_neox", "byte_level"),
        ("gpt_neo", "byte_level"),
        ("opt", "byte_level"),
        ("phi", "gpt_neox"),
    ]:
        of = {
            "word_piece_cased": ["BertTokenizer"],
            "byte_level": ["GPT2Tokenizer", "LlamaTokenizer", "Qwen2TokenizerFast"],
            "unigram": ["XLMRobertaTokenizerFast", "CamembertTokenizer"],
            "llama": ["LlamaTokenizerFast"],
            "gemma": ["GemmaTokenizer", "LlamaTokenizer"],
            "gpt_neox": ["GPTNeoXTokenizerFast", "CodeGenTokenizer"],
        }[name]
        for tokenizer_class in [None, "PreTrainedTokenizerFast", "TokenizersBackend", *of]:
            patch = {"pre_tokenizer": {"add_prefix_space": True}} if name == "byte_level" else {}
            named = files_of(name, {}, tokenizer_class, patch, model_type=model_type)
            yield f"{model_type} with {name}, {tokenizer_class}", named


def merged(document, patch):
    if not isinstance(patch, dict):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None and isinstance(document, dict):
            result[key] = None
        else:
            result[key] = merged(result.get(key), value)
    return result


def answer(document, case):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "tokenizer.json").write_text(json.dumps(merged(document, case["patch"])))
        (folder / "config.json").write_text(json.dumps({"model_type": case["model_type"]}))
        for name, content in case["files"].items():
            (folder / name).write_text(json.dumps(content))
        tokenizer = AutoTokenizer.from_pretrained(folder)
        ids = [tokenizer(line)["input_ids"] for line in LINES]
        pair = tokenizer(*PAIR)
        return {
            "ids": ids,
            "decoded": [tokenizer.decode(ids[3], skip_special_tokens=True), tokenizer.decode(ids[5])],
            "cut": tokenizer(LONG, truncation=True, max_length=7)["input_ids"],
            "pair": pair["input_ids"],
            "types": pair.get("token_type_ids"),
            "cut_pair": tokenizer(*LONG_PAIR, truncation=True, max_length=17)["input_ids"],
        }


def compare(folder):
    known = json.loads((folder / "cases.json").read_text())
    by_name = {case["name"]: case for case in known["cases"]}
    differ = 0
    for case in known["cases"]:
        document = json.loads((folder / f"{case['tokenizer']}.json").read_text())
        try:
            found = answer(document, case)
        except Exception as error:  # noqa: BLE001
            print(f"{case['name']}: {type(error).__name__}: {error}".splitlines()[0][:150])
            continue
        names = [name for name in found if found[name] != by_name[case.get("as", case["name"])][name]]
        differ += bool(names)
        if names:
            print(f"{case['name']}: {', '.join(names)}")
    print(f"transformers {transformers.__version__}: {differ} of {len(known['cases'])} cases differ")


def main():
    if sys.argv[1:2] == ["--against"]:
        return compare(pathlib.Path(sys.argv[2]))
    GOLDENS.mkdir(parents=True, exist_ok=True)
    documents = {}
    for name, (make, _, _, _) in TOKENIZERS.items():
        path = GOLDENS / f"{name}.json"
        if not path.exists():  # two trainings differ in the order of equals: delete a file to make it anew
            path.write_text(make().to_str(pretty=False) + "\n")
        text = path.read_text()
        documents[name] = json.loads(text)
    lines, earlier = [], {}
    for name, case in cases():
        try:
            found = answer(documents[case["tokenizer"]], case)
        except Exception as error:  # noqa: BLE001
            print(f"left out: {name}: {type(error).__name__}: {error}".splitlines()[0][:150])
            continue
        same = earlier.setdefault(json.dumps(found), name)
        answers = found if same == name else {"as": same}
        lines.append(json.dumps({"name": name, **case, **answers}, ensure_ascii=False))
    head = json.dumps({"lines": LINES, "long": LONG, "pair": PAIR, "long_pair": LONG_PAIR}, ensure_ascii=False)[1:-1]
    (GOLDENS / "cases.json").write_text("{" + head + ', "cases": [\n' + ",\n".join(lines) + "\n]}\n")
    print(len(lines), "cases")


if __name__ == "__main__":
    main()
