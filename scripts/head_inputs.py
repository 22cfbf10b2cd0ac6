"""What heads of real models read of the coordinates of their input, beside the same in bases that are rotated at random.
scripts/answers_models runs it; the measure is said in docs/heads/results/README.md."""

import numpy as np
from head_rank import roots

ROTATIONS = 100


def share(norms):
    """Of squared norms [coordinates, ...]: (sum n)^2 / sum n^2 as a share of the coordinates."""
    return norms.sum(0) ** 2 / np.square(norms).sum(0) / len(norms)


def mean_over_angles(gram):
    """Of W_i^K^T W_i^K [d_key, d_key] what stands between W_i^Q R and its transpose, when R turns each plane by any angle alike."""
    half = len(gram) // 2
    each = (gram.diagonal()[:half] + gram.diagonal()[half:]) / 2
    return np.diag(np.concatenate([each, each]))


def read_of(w, gram):
    """[d_model, d_key], whose rows have the norms of those of w B where B B^T is `gram`; of Frobenius norm 1."""
    found = w @ roots(gram)[0]
    return found / np.linalg.norm(found)


def stacked(case, attention):
    """S_i of all heads, [d_model, heads, 3 d_key]."""
    q, k, v = (case.by_head(attention, matrix).swapaxes(1, 2) for matrix in "qkv")
    o = case.by_head(attention, "o")
    turned = case.name == "smollm2"
    if turned:  # gains of the norm before
        gains = case.tensors[f"model.layers.{attention.name.split('.')[1]}.input_layernorm.weight"].astype(np.float64)
        q, k, v = (gains[:, None] * w for w in (q, k, v))
    between = mean_over_angles if turned else lambda gram: gram
    heads = [np.hstack([read_of(q[i], between(k[i].T @ k[i])), read_of(k[i], between(q[i].T @ q[i])), read_of(v[i], o[i].T @ o[i])])
             for i in range(attention.heads)]
    return np.stack(heads, axis=1).astype(np.float32)


def overlap(norms):
    """Of squared norms [coordinates, heads]: the mean over pairs of heads of the cosine between what they read by coordinate, 1 where
    both read the same coordinates alike and 0 where no coordinate is read by both."""
    units = norms / np.linalg.norm(norms, axis=0)
    return float((units.T @ units)[np.triu_indices(units.shape[1], 1)].mean())


def gains_share(case, attention):
    """The share of the coordinates for the gains of the norm before alone; None where there is no such norm."""
    gains = case.tensors.get(f"model.layers.{attention.name.split('.')[1]}.input_layernorm.weight")
    return None if gains is None else float(share(np.square(gains.astype(np.float64))))


def rotation(random, d):
    """One of all rotations and reflections alike (Haar)."""
    q, r = np.linalg.qr(random.standard_normal((d, d)))
    return (q * np.sign(r.diagonal())).astype(np.float32)


def check_slices(stacks):
    """The largest share of a head that is cut to a slice of d/h coordinates."""
    d, heads, _ = stacks.shape
    largest = max(float(share(np.square(stacks[i * d // heads : (i + 1) * d // heads, i]).sum(-1))) * (1 / heads) for i in range(heads))
    assert largest <= 1 / heads + 1e-6
    return largest


def inputs(case):
    random, d = np.random.default_rng(1), case.model.d_model
    stacks = {attention.name: stacked(case, attention) for attention in case.attentions}
    report = {"d_model": d, "heads": case.attentions[0].heads, "rotations": ROTATIONS,
              "largest_of_a_slice": max(map(check_slices, stacks.values())),
              "as_they_are": {name: share(np.square(s).sum(-1)).tolist() for name, s in stacks.items()},
              "overlap": {name: overlap(np.square(s).sum(-1)) for name, s in stacks.items()},
              "gains": {attention.name: gains_share(case, attention) for attention in case.attentions},
              "rotated": {name: [] for name in stacks}}
    for _ in range(ROTATIONS):
        turn = rotation(random, d)
        for name, s in stacks.items():
            report["rotated"][name].append(share(np.square((turn @ s.reshape(d, -1)).reshape(s.shape)).sum(-1)).tolist())
    return report
