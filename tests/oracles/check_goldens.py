"""Makes tests/goldens/check: what transformers computes of some of the models in tests/goldens when `multihead check` asks. Of all
but the first what the first layer shows, without contributions, is enough to find what is wrong there.

    python -m venv venv && venv/bin/pip install torch transformers safetensors numpy gguf
    venv/bin/python tests/oracles/check_goldens.py build/multihead [FOLDER]
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from safetensors import safe_open
from safetensors.numpy import save_file

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GOLDENS = ROOT / "tests/goldens"
sys.path.insert(0, str(ROOT / "share/check"))
import site_oracle  # noqa: E402

MODELS = ["llama/tied_grouped", "gpt2/tied", "mistral/window", "roberta/masked", "gemma2/capped", "gguf/untied_llama3.gguf"]
FLAGS = {"gguf/untied_llama3.gguf": ["--text", "The year 2024"]}


def is_kept(name):
    words = name.split(".")
    return "contributions" not in words and (len(words) < 3 or not words[2].isdigit() or words[2] == "0")


def request_of(tool, model):
    """What multihead asks of transformers."""
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch) / "request.json"
        subprocess.run([tool, "check", str(GOLDENS / model), *FLAGS.get(model, []), "--request", str(file)], check=True)
        return json.loads(file.read_text(encoding="utf-8"))


def make(tool, model, whole, file):
    with tempfile.TemporaryDirectory() as scratch:
        request, answer = pathlib.Path(scratch) / "request.json", pathlib.Path(scratch) / "answer.safetensors"
        request.write_text(json.dumps(request_of(tool, model)), encoding="utf-8")
        site_oracle.answer(request, answer)
        with safe_open(answer, "numpy") as found:
            names = found.keys()
            tensors = {name: found.get_tensor(name) for name in names if whole or is_kept(name)}
            save_file(tensors, file, metadata={**found.metadata(), "executable": "python3"})
    print(f"{model}: {len(tensors)} tensors, {file.stat().st_size} bytes")


def main():
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else GOLDENS / "check"
    folder.mkdir(parents=True, exist_ok=True)
    for model in MODELS:
        make(sys.argv[1], model, model == MODELS[0], folder / f"{model.replace('/', '_')}.safetensors")


if __name__ == "__main__":
    main()
