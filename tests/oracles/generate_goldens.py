"""Makes tests/goldens/generate: a small random GPT-2 with a byte-level tokenizer, as save_pretrained writes them, and
expected.json: what transformers' logits processors make of random logits, what its generate() answers greedily, by beam
search and with a repetition penalty, prompts of ChatML templates, and perplexities.

    python -m venv venv && venv/bin/pip install torch transformers tokenizers
    venv/bin/python tests/oracles/generate_goldens.py [FOLDER]
"""

import json
import pathlib
import shutil
import sys

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, GenerationConfig, LogitsProcessorList, PreTrainedTokenizerFast
from transformers.generation import logits_process as lp

SMOLLM2 = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nYou are a"
    " helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\\n' }}{% endif %}{{'<|im_start|>' +"
    " message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
PLAIN = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' +"
    " '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
OVER_LINES = """{%- for message in messages -%}
    {% if loop.first and messages[0]["role"] != "system" %}
    {{- "<|im_start|>system\\nYou don't know.<|im_end|>\\n" -}}
    {% endif %}
    {{- "<|im_start|>" + message["role"] + "\\n" + message["content"] + "<|im_end|>" + "\\n" -}}
{%- endfor -%}
{% if add_generation_prompt %}
    {{- "<|im_start|>assistant\\n" }}
{%- endif -%}
"""
LLAMA2 = "{% for message in messages %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% endfor %}"

TEXT = [
    "the small dog sees a cat .",
    "two dogs run in the garden , and a cat sees them .",
    "the sky is blue ; the garden is green .",
    "does the cat see the dog ? yes , the small cat sees it .",
    "Ein Käfer läuft über die Straße – 漢字 und ☃ 😀 .",
]


def make_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=311, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<|endoftext|>", eos_token="<|endoftext|>")


def make_model(vocabulary):
    torch.manual_seed(35)
    config = GPT2Config(
        vocab_size=vocabulary, n_positions=67, n_embd=21, n_layer=3, n_head=3, bos_token_id=0, eos_token_id=0,
        attn_implementation="eager",
    )
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "ln_" not in name:
                parameter.add_((1.2 if "wpe" in name else 0.35) * torch.randn_like(parameter))
        model.transformer.wte.weight[2] *= 1.7  # an end token that comes now and then
    model.generation_config = GenerationConfig(bos_token_id=0, eos_token_id=[0, 2], pad_token_id=0)
    return model


def filters():
    """Rows of logits, the tokens before, and the rows that each processor makes of them."""
    torch.manual_seed(11)
    rows = torch.randn(3, 23) * torch.tensor([[1.0], [3.0], [0.2]])
    rows[1, 7] = rows[1, 3]  # a tie
    before = torch.randint(0, 23, (3, 13))
    made = {}

    def add(name, options, processors):
        scores = LogitsProcessorList(processors)(before, rows.clone())
        found = [[None if x == -float("inf") else x for x in row] for row in scores.tolist()]
        made[name] = {"options": options, "logits": found}

    add("repetition", {"repetition_penalty": 1.7}, [lp.RepetitionPenaltyLogitsProcessor(1.7)])
    add("repetition_below_1", {"repetition_penalty": 0.6}, [lp.RepetitionPenaltyLogitsProcessor(0.6)])
    add("temperature", {"temperature": 0.7}, [lp.TemperatureLogitsWarper(0.7)])
    for k in (1, 4, 22, 23, 99):
        add(f"top_k_{k}", {"top_k": k}, [lp.TopKLogitsWarper(k)])
    for p in (0.01, 0.3, 0.8, 0.99):
        add(f"top_p_{p}", {"top_p": p}, [lp.TopPLogitsWarper(p)])
    for p in (0.01, 0.1, 0.5, 1.0):
        add(f"min_p_{p}", {"min_p": p}, [lp.MinPLogitsWarper(p)])
    # In the order of generate(): see order() below.
    add(
        "all",
        {"repetition_penalty": 1.3, "temperature": 1.5, "top_k": 15, "top_p": 0.9, "min_p": 0.05},
        [
            lp.RepetitionPenaltyLogitsProcessor(1.3),
            lp.TemperatureLogitsWarper(1.5),
            lp.TopKLogitsWarper(15),
            lp.TopPLogitsWarper(0.9),
            lp.MinPLogitsWarper(0.05),
        ],
    )
    return {"rows": rows.tolist(), "before": before.tolist(), "made": made}


def order(model):
    """The order in which generate() applies its processors."""
    config = GenerationConfig(
        do_sample=True, repetition_penalty=1.3, temperature=1.5, top_k=15, top_p=0.9, min_p=0.05, eos_token_id=0,
        suppress_tokens=[5],
    )
    made = model._get_logits_processor(generation_config=config, input_ids_seq_length=3, device="cpu")
    return [type(p).__name__ for p in made]


def stopped_options():
    """Stop strings that are a token, a part of one, or lie in two; and some that never come."""
    beams = [
        ("the sky is blue", 4, 0.5, ["B3", "C!"]), ("does", 5, 1.0, ["ä"]), ("does", 4, 0.0, ["never", "!"]), ("two", 3, 0.0, [" is", "C"]),
        ("two", 4, 1.0, ["s b", "!"]), ("the sky is blue", 4, 0.5, ["*"]), ("the small dog", 3, 0.0, ["H"]),
        ("does", 4, 1.0, ["nowhere"]),
    ]
    for prompt, count, penalty, stop in beams:
        yield prompt, dict(
            max_new_tokens=25, num_beams=count, length_penalty=penalty, early_stopping=True, stop_strings=stop
        )
    yield "does", dict(max_new_tokens=25, stop_strings=["lä"])


def generated(model, tokenizer):
    model = model.double()
    cases = []
    for prompt, options in [
        ("the small dog", dict(max_new_tokens=25)),
        ("two", dict(max_new_tokens=25)),
        ("the sky is blue ; the garden", dict(max_new_tokens=13, repetition_penalty=1.4)),
        ("the small dog", dict(max_new_tokens=11, num_beams=3, length_penalty=0.0, early_stopping=True)),
        ("does", dict(max_new_tokens=25)),
        ("does", dict(max_new_tokens=7, num_beams=5, length_penalty=1.0, early_stopping=True)),
        ("Ein Käfer", dict(max_new_tokens=5, num_beams=4, length_penalty=0.5, early_stopping=True)),
        *stopped_options(),
    ]:
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        found = model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, eos_token_id=[0, 2], pad_token_id=0, tokenizer=tokenizer,
            return_dict_in_generate=True, output_scores=True, **options
        )
        out = found.sequences
        new = out[0, ids.shape[1] :]
        if "num_beams" in options:
            chosen = model.compute_transition_scores(out, found.scores, found.beam_indices)[0]
        else:
            with torch.no_grad():
                logits = model(out).logits[0, ids.shape[1] - 1 : -1]
            chosen = logits.log_softmax(-1).gather(1, new[:, None])[:, 0]
        text = tokenizer.decode(new, skip_special_tokens=True)
        case = {"prompt": prompt, "options": options, "prompt_ids": ids[0].tolist(), "tokens": new.tolist(),
                "log_probabilities": chosen.tolist(), "text": text}
        if "stop_strings" in options:
            case["stopped"] = next((s for s in options["stop_strings"] if s in text), "")
            assert case["stopped"] or new[-1] in (0, 2)
        cases.append(case)
    return cases


def chats(tokenizer):
    found = []
    for name, template in [("smollm2", SMOLLM2), ("plain", PLAIN), ("over_lines", OVER_LINES), ("llama2", LLAMA2)]:
        user = {"role": "user", "content": "Why is the sky blue?\nSay it."}
        prompt = lambda messages: tokenizer.apply_chat_template(
            messages, chat_template=template, tokenize=False, add_generation_prompt=True
        )
        found.append(
            {"name": name, "template": template, "prompt": prompt([user]),
             "with_system": prompt([{"role": "system", "content": "Be short."}, user])}
        )
    return found


def perplexities(model, tokenizer):
    """As https://huggingface.co/docs/transformers/perplexity slides its windows; every token but the first is scored once."""
    model = model.double()
    text = "\n".join(TEXT)
    ids = tokenizer(text, return_tensors="pt").input_ids
    found = []
    for context, stride in [(67, 66), (67, 31), (29, 28), (29, 5), (13, 1)]:
        scored, before = [], 0
        for begin in range(0, ids.shape[1], stride):
            end = min(begin + context, ids.shape[1])
            new = end - before
            window = ids[:, begin:end]
            with torch.no_grad():
                logp = model(window).logits[0, :-1].log_softmax(-1).gather(1, window[0, 1:, None])[:, 0]
            scored += logp[-new:].tolist() if new < window.shape[1] else logp.tolist()
            before = end
            if end == ids.shape[1]:
                break
        found.append(
            {"context": context, "stride": stride, "tokens": len(scored), "log_probabilities": scored,
             "perplexity": float(torch.tensor(scored, dtype=torch.float64).mean().neg().exp())}
        )
    return {"text": text, "ids": ids[0].tolist(), "found": found}


def main():
    here = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "generate"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    shutil.rmtree(folder / "gpt2", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer()
    model = make_model(len(tokenizer))
    tokenizer.chat_template = SMOLLM2
    model.save_pretrained(folder / "gpt2")
    tokenizer.save_pretrained(folder / "gpt2")
    expected = {
        "order": order(model),
        "filters": filters(),
        "generated": generated(model, tokenizer),
        "chats": chats(tokenizer),
        "perplexities": perplexities(model, tokenizer),
    }
    (folder / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
