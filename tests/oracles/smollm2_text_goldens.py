"""Makes tests/goldens/generate/smollm2.json: what transformers' generate() answers with SmolLM2-135M-Instruct from its GGUF
file, greedily, with a repetition penalty and by beam search; prompts by the file's own chat template.

    python -m venv venv && venv/bin/pip install torch transformers accelerate gguf
    venv/bin/python tests/oracles/smollm2_text_goldens.py smollm2.gguf    # scripts/models fetches it
"""

import json
import pathlib
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

# No digits: transformers does not know this model's rule for them.
CASES = [
    ("Why is the sky blue?", True, dict(max_new_tokens=40)),
    ("Name three colours.", True, dict(max_new_tokens=40)),
    ("The sky is", False, dict(max_new_tokens=30, repetition_penalty=1.2)),
    ("The sky is", False, dict(max_new_tokens=20, num_beams=4, length_penalty=0.0, early_stopping=True)),
]


def main():
    gguf = pathlib.Path(sys.argv[1]).resolve()
    file = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "generate" / "smollm2.json"
    where = dict(pretrained_model_name_or_path=str(gguf.parent), gguf_file=gguf.name)
    tokenizer = AutoTokenizer.from_pretrained(**where)
    model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32, attn_implementation="eager").eval()
    cases = []
    for prompt, chat, options in CASES:
        text = prompt
        if chat:
            user = [{"role": "user", "content": prompt}]
            text = tokenizer.apply_chat_template(user, tokenize=False, add_generation_prompt=True)
        ids = tokenizer(text, return_tensors="pt", add_special_tokens=False).input_ids
        with torch.no_grad():
            out = model.generate(
                ids, attention_mask=torch.ones_like(ids), do_sample=False, eos_token_id=2, pad_token_id=2, **options
            )[0, ids.shape[1] :].tolist()
        cases.append({"prompt": prompt, "chat": chat, "options": options, "prompt_ids": ids[0].tolist(),
                      "tokens": [t for t in out if t != 2], "text": tokenizer.decode(out, skip_special_tokens=True)})
    file.write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    main()
