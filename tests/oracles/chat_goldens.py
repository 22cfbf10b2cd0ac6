"""Makes tests/goldens/chat/expected.json: the prompts that transformers' apply_chat_template writes with the templates there.

    python -m venv venv && venv/bin/pip install transformers jinja2
    venv/bin/python tests/oracles/chat_goldens.py
    venv/bin/python tests/oracles/chat_goldens.py --live FILE SEED COUNT [FOLDER]

--live writes COUNT chats, and the answers about them and the templates of FOLDER (any *.jinja), in the same form to FILE. Of a prompt
there is the beginning of its SHA-256; null: the template refuses the chat.
"""

import datetime
import hashlib
import json
import pathlib
import random
import sys

import transformers.utils.chat_template_utils as templates
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

HERE = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "chat"
NOW = (2025, 7, 3, 14, 5)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
TEXTS = [
    "", "Hello", "How high is the sky?", "  spaces around \n", "é漢字 \u3000x\u00a0", "two\n\nlines\r\n", "<|im_end|> in a text",
    "</think> a", "<think>\nhm\n</think>\n\nYes.", "{{ x }} {% if %} {# c #}", "'\"\\ quotes", "\u200d👩‍🚀 ΑΓΓ İ", "[INST] x [/INST]",
    "a long text " * 40, "\t\n", "\x1c\x1dcontrols\x85\u2028", "<tool_response>\nz\n</tool_response>", "/no_think Do it.", "/system_override x",
    "<|start_header_id|>user<|end_header_id|>", "<start_of_turn>", "</s><s>",
]  # fmt: skip


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(*NOW)


def chats(seed, count):
    choice = random.Random(seed)
    found = []
    for _ in range(count):
        some = lambda: " ".join(choice.choices(TEXTS, k=choice.choice([1, 1, 2])))
        messages = [{"role": "system", "content": some()}] if choice.random() < 0.4 else []
        for turn in range(choice.randrange(1, 8)):
            messages += [{"role": "user", "content": some()}, {"role": "assistant", "content": some()}]
        found.append(messages[:-1])
    return found


def answer(tokenizer, template, messages, add_generation_prompt):
    try:
        text = tokenizer.apply_chat_template(
            messages, chat_template=template, tokenize=False, add_generation_prompt=add_generation_prompt
        )
    except Exception:
        return None
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def main():
    templates.datetime = Clock
    live = sys.argv[1:2] == ["--live"]
    out = pathlib.Path(sys.argv[2]) if live else HERE / "expected.json"
    seed, count = (int(sys.argv[3]), int(sys.argv[4])) if live else (7, 40)
    folder = pathlib.Path(sys.argv[5]) if len(sys.argv) > 5 else HERE
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"<unk>": 0}, "<unk>")), **TOKENS)
    asked = chats(seed, count)
    found = {"now": NOW, "tokens": TOKENS, "chats": [[[m["role"], m["content"]] for m in chat] for chat in asked], "answers": []}
    for file in sorted(folder.glob("*.jinja")):
        template = file.read_bytes().decode()
        found["answers"].append({
            "file": str(file) if live else file.name,
            "prompts": [answer(tokenizer, template, chat, True) for chat in asked],
            "without": [answer(tokenizer, template, chat, False) for chat in asked[: count // 4]],
        })  # fmt: skip
    lines = [f'"{key}": {json.dumps(found[key], ensure_ascii=False)}' for key in ("now", "tokens")]
    for key in ("chats", "answers"):
        lines.append(f'"{key}": [\n ' + ",\n ".join(json.dumps(one, ensure_ascii=False) for one in found[key]) + "]")
    out.write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
