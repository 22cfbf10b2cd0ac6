"""Makes tests/goldens/generate/gemma3.json: how texts go on greedily in Gemma 3 270M, by transformers in double precision with the
numbers that the gguf package reads of the quantised file, and by llama.cpp with the same numbers in float32 (with the quantised ones it
rounds what layers read to 8 bits, too, and chooses other tokens where two are nearly alike).

    python -m venv venv && venv/bin/pip install torch transformers gguf xllamacpp
    venv/bin/python tests/oracles/gemma3_text_goldens.py build/multihead gemma3.gguf    # scripts/models BUILD gemma3 fetches it
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy as np
import torch
import transformers
import xllamacpp
from gguf import GGUFValueType

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "share/check"))
import site_oracle  # noqa: E402

CASES = [
    ("The capital of France is", 64),
    ("Once upon a time, there was a small robot", 64),
    ("Zürich, 東京 🙂 x² ≤ 3.14\n\n", 32),
    (", ".join(str(i) for i in range(1, 251)), 16),  # longer than the window of most layers, 512 tokens
]


def by_transformers(tool, file):
    with tempfile.TemporaryDirectory() as scratch:
        request = pathlib.Path(scratch) / "request.json"
        subprocess.run([tool, "check", file, "--request", request], check=True)
        model = site_oracle.load(transformers.AutoModelForCausalLM, json.loads(request.read_text()), "eager")
    tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    for prompt, new_tokens in CASES:
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=new_tokens,
                             min_new_tokens=new_tokens, output_logits=True, return_dict_in_generate=True)
        tokens = out.sequences[0, ids.shape[1]:]
        logs = torch.stack(out.logits)[:, 0].log_softmax(-1).gather(1, tokens[:, None])[:, 0]
        yield {"prompt": prompt, "prompt_ids": ids[0].tolist(), "tokens": tokens.tolist(), "text": tokenizer.decode(tokens),
               "log_probabilities": [round(log, 6) for log in logs.tolist()]}


def write_floats(file, to):
    """A copy with float32 numbers."""
    read = gguf.GGUFReader(file)
    writer = gguf.GGUFWriter(to, read.fields["general.architecture"].contents())
    for key, field in read.fields.items():
        if not key.startswith("GGUF.") and key != "general.architecture":
            is_list = field.types[0] == GGUFValueType.ARRAY
            writer.add_key_value(key, field.contents(), field.types[0], sub_type=field.types[-1] if is_list else None)
    for tensor in read.tensors:
        writer.add_tensor(tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def by_llama_cpp(file):
    """The tokens and the log-probability of each."""
    with tempfile.TemporaryDirectory() as scratch:
        params = xllamacpp.CommonParams()
        params.model.path = str(pathlib.Path(scratch) / "floats.gguf")
        write_floats(file, params.model.path)
        params.n_ctx, params.n_parallel = 2048, 1
        params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        server = xllamacpp.Server(params)
        for prompt, new_tokens in CASES:
            answer = server.handle_completions({"prompt": prompt, "max_tokens": new_tokens, "temperature": 0, "logprobs": 1})
            found = answer["choices"][0]["logprobs"]["content"]
            yield [token["id"] for token in found], [round(token["logprob"], 4) for token in found]


def main():
    tool, file = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    with torch.no_grad():
        cases = list(by_transformers(tool, file))
    for case, (tokens, logs) in zip(cases, by_llama_cpp(file), strict=True):
        assert tokens == case["tokens"], case["prompt"]
        case["llama_cpp_log_probabilities"] = logs
        apart = max(abs(a - b) for a, b in zip(logs, case["log_probabilities"], strict=True))
        print(f"{case['prompt'][:40]!r}: log-probabilities of llama.cpp are within {apart:.1e}")
    text = "[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]\n"
    (ROOT / "tests/goldens/generate/gemma3.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
