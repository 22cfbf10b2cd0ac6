"""Makes tests/goldens/config_keys/saved_VERSION.json: config.json and generation_config.json of each family as transformers saves
them with the defaults of its classes, and nothing else set. multihead says no word about any of their keys. Run it with each
version of transformers that the tests name.

    venv/bin/python tests/oracles/saved_by_default.py [FOLDER]
"""

import json
import pathlib
import sys
import tempfile

import transformers

CLASSES = {
    "bert": "Bert",
    "roberta": "Roberta",
    "camembert": "Camembert",
    "xlm-roberta": "XLMRoberta",
    "mpnet": "MPNet",
    "distilbert": "DistilBert",
    "deberta-v2": "DebertaV2",
    "electra": "Electra",
    "modernbert": "ModernBert",
    "nomic_bert": "NomicBert",  # since transformers 5
    "gpt2": "GPT2",
    "llama": "Llama",
    "mistral": "Mistral",
    "qwen2": "Qwen2",
    "qwen3": "Qwen3",
    "marian": "Marian",
    "bart": "Bart",
    "mbart": "MBart",
    "m2m_100": "M2M100",
    "t5": "T5",
    "mt5": "MT5",
    "umt5": "UMT5",
    "gemma2": "Gemma2",
    "gemma3_text": "Gemma3Text",
    "gpt_neo": "GPTNeo",
    "gpt_neox": "GPTNeoX",
    "olmo2": "Olmo2",
    "opt": "OPT",
    "phi": "Phi",
    "phi3": "Phi3",
    "smollm3": "SmolLM3",
}
GENERATES = set(CLASSES) - {"bert", "roberta", "camembert", "xlm-roberta", "mpnet", "distilbert", "deberta-v2", "electra", "modernbert", "nomic_bert"}


def main():
    here = pathlib.Path(__file__).resolve().parent.parent / "goldens" / "config_keys"
    to = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here
    to.mkdir(parents=True, exist_ok=True)
    saved = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for family, name in CLASSES.items():
            if not hasattr(transformers, name + "Config"):
                continue
            config = getattr(transformers, name + "Config")()
            config.architectures = [name + "Model"]  # as save_pretrained() of a model sets them
            config.save_pretrained(folder)
            files = {"config.json": json.loads((folder / "config.json").read_text())}
            if family in GENERATES:
                transformers.GenerationConfig.from_model_config(config).save_pretrained(folder)
                files["generation_config.json"] = json.loads((folder / "generation_config.json").read_text())
            saved[family] = files
    lines = ",\n".join(f"  {json.dumps(family)}: {json.dumps(files)}" for family, files in saved.items())
    (to / f"saved_{transformers.__version__}.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
