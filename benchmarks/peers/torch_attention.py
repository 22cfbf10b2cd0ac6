"""What multihead.torch changes for a program of PyTorch: the same calls with and without it, in turns in one run, medians.

    pip install torch transformers .
    python benchmarks/peers/torch_attention.py [--only WORDS] [--rounds 7] [--out FILE.json] [--text FILE.gz] [--minilm FOLDER]

Two threads. Both sides are the same program; only multihead.torch.install() and uninstall() differ, but for rows that name two
programs, the one of torch first. TEXT: sentences, whose lengths in words are those of the ragged batch; MINILM: its folder.
docs/torch.md has the table.
"""

import argparse
import gzip
import json
import statistics
import time
from contextlib import nullcontext
from itertools import islice

import torch
import torch.nn.functional as F
from machine import processor

import multihead
import multihead.torch


def timed(call, seconds):
    """The median of calls for about so many seconds."""
    call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def attention(batch, heads, length, size, *, groups=None, causal=False, both=False, dropout=0.0, mask=None, mask_gradient=False):
    def made(heads):
        return torch.randn(batch, heads, length, size).requires_grad_(both)

    q, k, v = made(heads), made(groups or heads), made(groups or heads)
    if mask_gradient:
        mask = torch.randn(heads, length, length).requires_grad_()
    d_output = torch.randn(batch, heads, length, size)

    def call():
        output = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=causal, dropout_p=dropout, enable_gqa=groups is not None
        )
        if both or mask_gradient:
            output.backward(d_output)

    return call


def padded(lengths, **given):
    longest = max(lengths)
    mask = torch.arange(longest)[None, None, None, :] < torch.tensor(lengths)[:, None, None, None]
    return attention(len(lengths), 8, longest, 64, mask=mask, **given)


def multihead_attention(dropout, need_weights, batch=8, length=128):
    layer = torch.nn.MultiheadAttention(768, 12, dropout=dropout, batch_first=True).train()
    x = torch.randn(batch, length, 768, requires_grad=True)

    def call():
        layer(x, x, x, need_weights=need_weights)[0].sum().backward()

    return call


def bert_step(batch=8, length=128):
    """A training step of a BERT-base of random weights, dropout 0.1."""
    from transformers import BertConfig, BertForMaskedLM

    model = BertForMaskedLM(BertConfig(attn_implementation="sdpa")).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    tokens = torch.randint(1000, 20000, (batch, length))

    def call():
        model(input_ids=tokens, attention_mask=torch.ones_like(tokens), labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return call


def packed(lengths, both=False):
    """varlen_attn on sentences end to end."""
    from torch.nn.attention.varlen import varlen_attn

    q, k, v, d_output = (torch.randn(sum(lengths), 8, 64) for _ in range(4))
    for one in (q, k, v):
        one.requires_grad_(both)
    ends = torch.tensor([0, *lengths]).cumsum(0).int()

    def call():
        output = varlen_attn(q, k, v, ends, ends, max(lengths), max(lengths))
        if both:
            output.backward(d_output)

    return call


def gpt2_prefill(implementation="sdpa", heads=(), **given):
    """GPT-2's shape with random weights reads 1,024 tokens; of these heads the weights are wanted."""
    from transformers import GPT2Config, GPT2Model

    import multihead.torch.transformers

    model = GPT2Model(GPT2Config(attn_implementation=implementation)).eval()
    tokens = torch.randint(1000, 20000, (1, 1024))

    def call():
        with torch.inference_mode(), multihead.torch.weights(model, heads) if heads else nullcontext():
            model(input_ids=tokens, **given)

    return call


def sentences_of(text):
    """The first 256."""
    with gzip.open(text, "rt", encoding="utf8") as file:
        return [line.strip() for line in islice(file, 256)]


def sentence_vectors(folder, sentences):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(folder, device="cpu")
    return lambda: model.encode(sentences, batch_size=32)


def rows(text, minilm):
    """Names, and functions that make what is called: one program, or two."""
    sentences = sentences_of(text) if text else []
    lengths = [len(one.split()) + 1 for one in sentences]
    yield "one score: what a call costs", lambda: attention(1, 1, 1, 8)
    for length, batch in ((32, 64), (128, 8), (512, 8), (2048, 1)):
        for both in (False, True):
            what = "forward + backward" if both else "forward"
            yield f"B{batch} H12 T{length} D64, {what}", lambda b=batch, t=length, both=both: attention(b, 12, t, 64, both=both)
            yield (
                f"B{batch} H12 T{length} D64 causal, {what}",
                lambda b=batch, t=length, both=both: attention(b, 12, t, 64, both=both, causal=True),
            )
    yield "B8 H12 T512 D128, forward", lambda: attention(8, 12, 512, 128)
    yield "B8 H12 T128 D64, dropout, forward + backward", lambda: attention(8, 12, 128, 64, both=True, dropout=0.1)
    yield "B8 H12 T512 D64, dropout, forward + backward", lambda: attention(8, 12, 512, 64, both=True, dropout=0.1)
    yield "B4 H8 T256 D64, mask with gradient, both", lambda: attention(4, 8, 256, 64, both=True, mask_gradient=True)
    mask = torch.arange(512)[None, None, None, :] < torch.tensor([512, 300, 200, 100])[:, None, None, None]
    yield "B4 H32 G8 T512 D64, padding mask, forward", lambda: attention(4, 32, 512, 64, groups=8, mask=mask)
    if lengths:
        yield "256 sentences padded, H8 D64, forward", lambda: padded(lengths)
        yield "256 sentences padded, H8 D64, both", lambda: padded(lengths, both=True)
        yield "256 sentences, padded sdpa: varlen_attn, forward", lambda: (padded(lengths), packed(lengths))
        yield "256 sentences, padded sdpa: varlen_attn, both", lambda: (padded(lengths, both=True), packed(lengths, both=True))
    for batch, length in ((8, 128), (2, 512)):
        for what, dropout, weights in (("", 0.0, False), (", dropout 0.1", 0.1, False), (", weights", 0.0, True)):
            yield (
                f"nn.MultiheadAttention 768, B{batch} T{length}, both{what}",
                lambda d=dropout, w=weights, b=batch, t=length: multihead_attention(d, w, b, t),
            )
    yield "BERT-base training step, B8 T128, dropout 0.1", bert_step
    yield "BERT-base training step, B2 T512, dropout 0.1", lambda: bert_step(2, 512)
    yield "GPT-2 reads 1,024 tokens", gpt2_prefill
    yield (
        "GPT-2 with weights, output_attentions: weights() of 2 heads",
        lambda: (gpt2_prefill("eager", output_attentions=True), gpt2_prefill("multihead", [(0, 3), (5, 1)])),
    )
    yield (
        "GPT-2, multihead alone: with weights() of 2 heads",
        lambda: (gpt2_prefill("multihead"), gpt2_prefill("multihead", [(0, 3), (5, 1)])),
    )
    if sentences and minilm:
        yield "MiniLM, 256 sentences by sentence-transformers", lambda: sentence_vectors(minilm, sentences)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose name has these words")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.4, help="of a turn")
    parser.add_argument("--out")
    parser.add_argument("--text")
    parser.add_argument("--minilm")
    given = parser.parse_args()
    torch.set_num_threads(2)
    multihead.set_threads(2)
    result = {"processor": processor(), "torch": torch.__version__, "rows": {}}
    print(f"{result['processor']}, torch {torch.__version__}, two threads\n")
    print("| | torch, ms | multihead.torch, ms | times as fast |\n|---|--:|--:|--:|")
    for name, make in rows(given.text, given.minilm):
        if given.only not in name:
            continue
        torch.manual_seed(1)
        made, times = make(), {"torch": [], "ours": []}
        of_torch, ours = made if isinstance(made, tuple) else (made, made)
        for _ in range(given.rounds):
            times["torch"].append(timed(of_torch, given.seconds))
            with multihead.torch.attention():
                times["ours"].append(timed(ours, given.seconds))
        torch_ms, ours_ms = (1e3 * statistics.median(times[side]) for side in ("torch", "ours"))
        ratio = statistics.median(a / b for a, b in zip(times["torch"], times["ours"]))
        print(f"| {name} | {torch_ms:.4g} | {ours_ms:.4g} | {ratio:.2f} |", flush=True)
        result["rows"][name] = {"torch_ms": torch_ms, "multihead_ms": ours_ms, "ratio": ratio}
    if given.out:
        with open(given.out, "w") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
