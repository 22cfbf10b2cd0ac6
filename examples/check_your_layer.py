# A multi-head attention written from scratch, checked tensor by tensor against multihead's:
#   python3 examples/check_your_layer.py build/multihead
# It needs numpy (Debian: python3-numpy).
import subprocess
import sys
import tempfile

if len(sys.argv) != 2:
    print(f"usage: python3 {sys.argv[0]} PROGRAM (e.g. build/multihead)", file=sys.stderr)
    sys.exit(2)
import numpy as np

d_model, heads, d_key, tokens = 8, 2, 4, 5
random = np.random.default_rng(1)
w = {name: random.normal(size=(d_model, d_model)) / np.sqrt(d_model) for name in ("w_q", "w_k", "w_v", "w_o")}
x = random.normal(size=(tokens, d_model))

mine = {}
for h in range(heads):
    q, k, v = (x @ w[name][:, h * d_key : (h + 1) * d_key] for name in ("w_q", "w_k", "w_v"))
    e = np.exp(q @ k.T / np.sqrt(d_key))
    mine[f"weights_{h}"] = e / e.sum(axis=1, keepdims=True)
    mine[f"z_{h}"] = mine[f"weights_{h}"] @ v
mine["output"] = np.hstack([mine[f"z_{h}"] for h in range(heads)]) @ w["w_o"]

with tempfile.TemporaryDirectory() as folder:
    for name, value in {**w, "x": x}.items():
        np.save(f"{folder}/{name}.npy", value)
    subprocess.run(
        [
            sys.argv[1],
            "trace",
            "--weights",
            folder,
            "--input",
            f"{folder}/x.npy",
            "--heads",
            str(heads),
            "--save",
            f"{folder}/steps",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    for name, value in mine.items():
        difference = abs(np.load(f"{folder}/steps/{name}.npy") - value).max()
        print(f"{name:10} differs by {difference:.1e} at most", "" if difference < 1e-5 else "  <- look here")
        assert difference < 1e-5, name
