"""Makes tests/goldens/roberta/padding.json: the states that models of the RoBERTa kind give sequences with the id of the padding
inside, in folders of the other goldens. transformers gives such a token the position pad_token_id and does not count it.

    venv/bin/python tests/oracles/pad_positions_goldens.py
"""

import json
import pathlib

import torch
from transformers import AutoModel

GOLDENS = pathlib.Path(__file__).resolve().parent.parent / "goldens"
FOLDERS = ["roberta/encoder", "roberta/camembert", "roberta/xlm", "mpnet/encoder"]


def main():
    found = []
    for name in FOLDERS:
        model = AutoModel.from_pretrained(GOLDENS / name, attn_implementation="eager").eval()
        # MPNet's embeddings have the padding 1 whatever its configuration says.
        pad = 1 if model.config.model_type == "mpnet" else model.config.pad_token_id
        other = [i for i in range(5, 11) if i != pad]
        for ids in [[other[0], pad, other[1], other[2]], [pad], [pad, pad, other[3], pad, other[4]], other[:3]]:
            with torch.no_grad():
                states = model.double()(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long))
            rows = [[round(x, 6) for x in row] for row in states.last_hidden_state[0].tolist()]
            found.append({"folder": name, "ids": ids, "states": rows})
    text = ",\n".join(json.dumps(one) for one in found)
    (GOLDENS / "roberta" / "padding.json").write_text("[\n" + text + "\n]\n")


if __name__ == "__main__":
    main()
