"""The rank of W_i^Q W_i^K^T that heads of real models use: all heads truncated at once, weighted by the activations of text or by the
matrices alone. scripts/answers_models runs it; what is done exactly is said in docs/heads/results/README.md.

What is checked on the way: the matrices of the file make the queries that the model shows, with rotary positions planes are where they are
taken to be, and at full rank nothing changes."""

import numpy as np

SHARES = (1.0, 0.75, 0.5, 0.25, 0.125)
SAME = 1e-4


def roots(moment):
    """The symmetric root of a matrix, and its inverse where it has one."""
    values, vectors = np.linalg.eigh(moment)
    root = np.sqrt(values.clip(0))
    inverse = np.where(root > 1e-7 * root.max(), 1 / np.where(root > 0, root, 1), 0)
    return (vectors * root) @ vectors.T, (vectors * inverse) @ vectors.T


def projector(queries, keys, rank):
    """The P [d_key, d_key] of this rank for which q P k^T is nearest to q k^T in the mean of squares, for independent q and k with these
    moments [d_key, d_key]."""
    (root, inverse), (key_root, _) = roots(queries), roots(keys)
    left = np.linalg.svd(root @ key_root)[0][:, :rank]
    return inverse @ left @ left.T @ root


def moments_on_text(case):
    """By attention the second moments of queries and the covariances of keys, [heads, d_key, d_key] each."""
    sums = {attention: [0.0, 0.0, 0.0, 0, 0] for attention in case.attentions}
    for text in case.other_texts:
        seen = case.observe(text, ["*.queries", "*.keys"])
        for attention, found in sums.items():
            queries, keys = attention.queries(seen), attention.keys(seen)
            found[0] += np.einsum("thi,thj->hij", queries, queries)
            found[1] += np.einsum("thi,thj->hij", keys, keys)
            found[2] += keys.sum(0)
            found[3] += len(queries)
            found[4] += len(keys)
    moments = {}
    for attention, (queries, keys, key_sum, query_count, key_count) in sums.items():
        mean = key_sum / key_count
        moments[attention] = (queries / query_count, keys / key_count - np.einsum("hi,hj->hij", mean, mean))
    return moments


def moments_of_matrices(case):
    """The same of W_i^Q^T W_i^Q and W_i^K^T W_i^K."""
    gram = lambda parts: parts @ parts.swapaxes(1, 2)
    return {a: (gram(case.by_head(a, "q")), gram(case.by_head(a, "k"))) for a in case.attentions}


def projected(case, moments, rank):
    """The tensors of W^Q and its bias with a projector of this rank behind each head."""
    tensors = {}
    for attention, (queries, keys) in moments.items():
        ps = np.stack([projector(q, k, rank) for q, k in zip(queries, keys)])
        weight = ps.swapaxes(1, 2) @ case.by_head(attention, "q")
        name = case.tensor_name(attention, "q", "bias")
        bias = case.tensors[name].reshape(attention.heads, -1)
        tensors[name] = np.einsum("hij,hi->hj", ps, bias).reshape(-1).astype(np.float32)
        tensors[case.tensor_name(attention, "q")] = weight.reshape(-1, weight.shape[2]).astype(np.float32)
    return tensors


def planes(vectors):
    """[..., d] as [..., d / 2] complex numbers, one for each plane in which rotary positions turn."""
    half = vectors.shape[-1] // 2
    return vectors[..., :half] + 1j * vectors[..., half:]


def planes_on_text(case):
    """By attention [heads, planes]: how much the plane's part of the scores varies over the keys that a query sees."""
    sums = {attention: 0.0 for attention in case.attentions}
    for text in case.other_texts:
        seen = case.observe(text, ["*.queries", "*.keys"])
        for attention in sums:
            queries, keys = planes(attention.queries(seen)), planes(attention.keys(seen))
            parts = np.einsum("qhp,khp->hpqk", queries, keys.conj()).real
            visible = attention.visible(parts[0, 0])
            means = (parts * visible).sum(-1, keepdims=True) / visible.sum(-1, keepdims=True)
            sums[attention] += (np.square(parts - means) * visible).sum((-1, -2))
    return sums


def planes_of_matrices(case):
    """The same by the norms of the plane's columns of W_i^Q and W_i^K."""
    norms = lambda parts: np.linalg.norm(planes(parts.swapaxes(1, 2)), axis=1)
    return {a: norms(case.by_head(a, "q")) * norms(case.by_head(a, "k")) for a in case.attentions}


def with_planes(case, contributions, rank):
    """The tensors of W^Q with the planes of the largest contributions alone, rank / 2 of each head."""
    tensors = {}
    for attention, found in contributions.items():
        kept = np.argsort(np.argsort(-found, axis=1), axis=1) < rank // 2
        weight = case.by_head(attention, "q") * np.concatenate([kept, kept], axis=1)[:, :, None]
        tensors[case.tensor_name(attention, "q")] = weight.reshape(-1, weight.shape[2]).astype(np.float32)
    return tensors


def check_matrices(case):
    """How far the queries of the file's matrices are from those of the model, as a share of their size."""
    seen = case.observe(case.texts[0], ["*attention.input", "*.projected_queries", "*.queries"])
    apart = 0.0
    for attention in case.attentions:
        queries = attention.queries(seen, "projected_queries")
        found = (case.by_head(attention, "q") @ seen[f"{attention.name}.input"].T).transpose(2, 0, 1)
        if case.name != "smollm2":
            found += case.tensors[case.tensor_name(attention, "q", "bias")].reshape(attention.heads, -1)
        else:  # turning leaves the length of each plane
            turned = np.abs(planes(attention.queries(seen))) - np.abs(planes(queries))
            apart = max(apart, np.abs(turned).max() / np.abs(queries).max())
        apart = max(apart, np.abs(found - queries).max() / np.abs(queries).max())
    assert apart < SAME, f"{case.name}: the queries of its file are {apart} apart from those that it shows"
    return float(apart)


def rank(case):
    rotary = case.name == "smollm2"
    truncated, of_text, of_matrices = ((with_planes, planes_on_text, planes_of_matrices) if rotary
                                       else (projected, moments_on_text, moments_of_matrices))
    attention = case.attentions[0]
    report = {"texts": len(case.texts), "other_texts": len(case.other_texts), "d_model": case.model.d_model, "heads": attention.heads,
              "key_heads": attention.key_heads, "d_key": attention.d_key, "matrices_apart": check_matrices(case), "whole": case.scores()}
    for name, find in (("weighted", of_text), ("plain", of_matrices)):
        found, report[name] = find(case), {}
        for share in SHARES:
            r = round(share * attention.d_key)
            with case.copy(truncated(case, found, r)) as model:
                report[name][r] = case.scores(model=model)
            if r == attention.d_key:
                apart = max(abs(a - b) / count for (a, count), (b, _) in zip(report[name][r], report["whole"]))
                assert apart < SAME, f"{case.name}: a truncation to the full rank changes its scores by {apart}"
                report[f"{name}_full_rank_apart"] = apart
    return report
