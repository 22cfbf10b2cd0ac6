"""multihead.torch beside torch's own attention, where torch is there: values, gradients, and which calls are forwarded."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import python

torch = pytest.importorskip("torch", minversion="2.9")

import torch.nn.functional as F  # noqa: E402, N812
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

import multihead as mh  # noqa: E402
import multihead.torch as plugin  # noqa: E402
from multihead import _native  # noqa: E402

Tensor = Any
sdpa = F.scaled_dot_product_attention


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    before = mh.threads()
    with plugin.attention():
        yield
    mh.set_threads(before)


@pytest.fixture
def kernel_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by a name with each call of our kernel."""
    calls: list[str] = []

    def counted(name: str, run: Callable[..., None]) -> Callable[..., None]:
        def call(*given: Any, **named: Any) -> None:
            calls.append(name)
            run(*given, **named)

        return call

    for name in ("torch_attention", "torch_attention_backward"):
        monkeypatch.setattr(_native, name, counted(name, getattr(_native, name)))
    return calls


def math_path(q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Tensor:
    """torch's own formula in float64."""
    mask = given.pop("attn_mask", None)
    if mask is not None and mask.dtype is not torch.bool:
        mask = mask.double()
    plugin.uninstall()
    try:
        with sdpa_kernel(SDPBackend.MATH):
            return sdpa(q.double(), k.double(), v.double(), attn_mask=mask, **given)
    finally:
        plugin.install()


def laid_out(at: random.Random, *shape: int) -> Tensor:
    """Normal numbers [B, H, T, size] that lie in one of the ways that programs give to torch."""
    b, h, t, c = shape
    way = at.choice(["plain", "turned", "packed", "gap", "turned last"])
    if way == "turned":
        return torch.randn(b, t, h, c).transpose(1, 2)
    if way == "packed":
        return torch.randn(b, t, 3, h, c)[:, :, 1].transpose(1, 2)
    if way == "gap":
        return torch.randn(b, h, t + 2, c)[:, :, 1:-1]
    if way == "turned last":
        return torch.randn(b, h, c, t).transpose(2, 3)
    return torch.randn(*shape)


def random_mask(at: random.Random, *shape: int) -> Tensor | None:
    """None, booleans or numbers that [B, H, Tq, Tk] broadcasts, some with rows that see nothing."""
    b, h, tq, tk = shape
    kind = at.choice(["none", "lengths", "booleans", "numbers", "numbers and -inf", "a row of nothing"])
    if kind == "none":
        return None
    if kind == "lengths":
        return torch.arange(tk)[None, None, None, :] < torch.randint(1, tk + 1, (b, 1, 1, 1))
    some = [at.choice([1, size]) for size in (b, h, tq, tk)][at.choice([0, 0, 1, 2]) :]
    if kind == "booleans":
        return torch.rand(some) < 0.7
    if kind == "numbers":
        return torch.randn(some)
    hidden = torch.rand(some) < 0.4
    if kind == "a row of nothing":
        hidden = torch.zeros(tq, tk, dtype=torch.bool)
        hidden[at.randrange(tq)] = True
    return torch.where(hidden, -torch.inf, torch.randn(hidden.shape))


def error(ours: Tensor, theirs: Tensor, scale: float = 1.0) -> float:
    """The largest difference, over the largest number or `scale`, whichever is larger."""
    ours, theirs = ours.detach().double(), theirs.detach().double()
    assert ours.shape == theirs.shape
    return float((ours - theirs).abs().max()) / max(scale, float(theirs.abs().max()))


def case(seed: int) -> tuple[list[Tensor], dict[str, Any]]:
    """Q, K, V and the other arguments of a call."""
    at = random.Random(seed)
    torch.manual_seed(seed)
    b, groups = at.choice([1, 2, 3]), at.choice([1, 2, 3])
    heads = groups * at.choice([1, 1, 1, 2, 3])
    tq, tk = at.choice([1, 2, 5, 17, 31, 67]), at.choice([1, 2, 7, 19, 33, 71, 257])
    d, d_value = at.choice([1, 8, 13, 16, 64]), at.choice([1, 8, 11, 64])
    q, k = laid_out(at, b, heads, tq, d), laid_out(at, b, groups, tk, d)
    v = laid_out(at, b, groups, tk, d if at.random() < 0.7 else d_value)
    given: dict[str, Any] = {"enable_gqa": heads != groups}
    if at.random() < 0.25:
        given["is_causal"] = True
    else:
        given["attn_mask"] = random_mask(at, b, heads, tq, tk)
    if at.random() < 0.3:
        given["scale"] = at.choice([0.3, 1.0])
    return [q, k, v], given


@pytest.mark.parametrize("hundred", range(5))
def test_values_and_gradients_of_500_calls(hundred: int, kernel_calls: list[str]) -> None:
    for seed in range(100 * hundred, 100 * hundred + 100):
        inputs, given = case(seed)
        mine = [one.detach().clone(memory_format=torch.preserve_format).requires_grad_() for one in inputs]
        theirs = [one.detach().double().requires_grad_() for one in inputs]
        del kernel_calls[:]
        output = sdpa(*inputs, **given)
        assert kernel_calls == ["torch_attention"], seed
        expected = math_path(*theirs, **given)
        assert error(output, expected) <= 2e-6, seed
        trained = sdpa(*mine, **given)
        assert torch.equal(trained, output), seed
        d_output = torch.randn(output.shape)
        trained.backward(d_output)
        expected.backward(d_output.double())
        assert "torch_attention_backward" in kernel_calls, seed
        # With one key dQ and dK are 0, of products that cancel out: their rounding is that of the largest gradient.
        scale = max(1.0, *(float(other.grad.abs().max()) for other in theirs))
        for one, other in zip(mine, theirs, strict=True):
            assert error(one.grad, other.grad, scale) <= 1e-5, seed


@pytest.mark.parametrize("shape", [(), (11,), (7, 11), (3, 1, 11), (2, 3, 7, 11), (2, 1, 1, 11), (1, 3, 7, 1), (2, 1, 7, 1)])
def test_gradient_of_a_mask(shape: tuple[int, ...], kernel_calls: list[str]) -> None:
    torch.manual_seed(5)
    q, k, v = torch.randn(2, 3, 7, 16), torch.randn(2, 3, 11, 16), torch.randn(2, 3, 11, 13)
    mine, theirs = torch.randn(shape).requires_grad_(), None
    theirs = mine.detach().double().requires_grad_()
    output, expected = sdpa(q, k, v, attn_mask=mine), math_path(q, k, v, attn_mask=theirs)
    d_output = torch.randn(output.shape)
    output.backward(d_output)
    expected.backward(d_output.double())
    assert kernel_calls == ["torch_attention", "torch_attention_backward"]
    assert mine.grad.shape == mine.shape
    assert error(mine.grad, theirs.grad) <= 1e-5


def test_gradients_against_differences() -> None:
    """float32 differences along random directions, in 20 cases; without masks that hide a whole row."""
    for seed in range(20):
        torch.manual_seed(seed)
        inputs = [
            torch.randn(1, 2, 5, 8).requires_grad_(),
            torch.randn(1, 2, 7, 8).requires_grad_(),
            torch.randn(1, 2, 7, 3).requires_grad_(),
        ]
        causal, d_output = seed % 2 == 1, torch.randn(1, 2, 5, 3)
        (sdpa(*inputs, is_causal=causal) * d_output).sum().backward()
        for at, one in enumerate(inputs):
            way = torch.randn(one.shape)
            ends = []
            for step in (1e-2, -1e-2):
                moved = [other.detach() + (step * way if other is one else 0) for other in inputs]
                ends.append(float((sdpa(*moved, is_causal=causal).double() * d_output).sum()))
            assert (ends[0] - ends[1]) / 2e-2 == pytest.approx(float((one.grad * way).sum()), rel=5e-3, abs=5e-3), (seed, at)


def test_dropout(kernel_calls: list[str]) -> None:
    """Weights that are kept are scaled, the share asked for is dropped, the seed is torch's, gradients are of the same weights."""
    torch.manual_seed(3)
    q, k = torch.randn(2, 3, 41, 8), torch.randn(2, 3, 53, 8)
    v = torch.eye(53).expand(2, 3, 53, 53).clone().requires_grad_()  # the output is the weights
    plain = sdpa(q, k, v)
    torch.manual_seed(11)
    dropped = sdpa(q, k, v, dropout_p=0.3)
    torch.manual_seed(11)
    again = sdpa(q, k, v, dropout_p=0.3)
    assert torch.equal(dropped, again)
    kept = dropped != 0
    assert 0.68 < float(kept.float().mean()) < 0.72
    assert error(dropped[kept], plain[kept] / 0.7) < 1e-4
    assert not torch.equal(sdpa(q, k, v, dropout_p=0.3), dropped)
    d_output = torch.randn(dropped.shape)
    (expected,) = torch.autograd.grad((dropped.detach() @ v), v, d_output)
    (actual,) = torch.autograd.grad(again, v, d_output)
    assert error(actual, expected) < 1e-5
    assert set(kernel_calls) == {"torch_attention", "torch_attention_backward"}


def test_dropout_and_causal_by_hand() -> None:
    """dQ and dK with dropout: torch's own autograd through the same kept weights."""
    torch.manual_seed(4)
    q, k = torch.randn(1, 2, 13, 8), torch.randn(1, 2, 13, 8)
    torch.manual_seed(9)
    kept = sdpa(q, k, torch.eye(13).expand(1, 2, 13, 13), dropout_p=0.4, is_causal=True) != 0
    v = torch.randn(1, 2, 13, 5)
    mine = [one.clone().requires_grad_() for one in (q, k, v)]
    theirs = [one.double().requires_grad_() for one in (q, k, v)]
    torch.manual_seed(9)
    output = sdpa(*mine, dropout_p=0.4, is_causal=True)
    scores = theirs[0] @ theirs[1].mT / 8**0.5
    weights = scores.masked_fill(torch.ones(13, 13).triu(1).bool(), -torch.inf).softmax(-1)
    keep_scale = 65536 / (65536 - int(0.4 * 65536 + 0.5))
    expected = torch.where(kept, weights * keep_scale, 0.0) @ theirs[2]
    assert error(output, expected) < 2e-6
    d_output = torch.randn(output.shape)
    output.backward(d_output)
    expected.backward(d_output.double())
    for one, other in zip(mine, theirs, strict=True):
        assert error(one.grad, other.grad) < 1e-5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_are_converted(dtype: Any, kernel_calls: list[str]) -> None:
    torch.manual_seed(6)
    inputs = [torch.randn(2, 3, 17, 16, dtype=dtype).requires_grad_() for _ in range(3)]
    output = sdpa(*inputs)
    assert output.dtype is dtype
    assert torch.equal(output, sdpa(*[one.float() for one in inputs]).to(dtype))
    output.sum().backward()
    assert [one.grad.dtype for one in inputs] == [dtype] * 3
    assert len(kernel_calls) == 3


def test_one_head_without_its_axis(kernel_calls: list[str]) -> None:
    q, k, v = torch.randn(5, 7, 8), torch.randn(5, 11, 8), torch.randn(5, 11, 8)
    for mask in (None, torch.rand(7, 11) < 0.6, torch.rand(5, 7, 11) < 0.6, torch.randn(5, 1, 11)):
        assert error(sdpa(q, k, v, attn_mask=mask), math_path(q, k, v, attn_mask=mask)) < 2e-6
    assert len(kernel_calls) == 4


def forwarded() -> dict[str, Callable[[], Tensor]]:
    """Calls that the kernel does not take."""
    q, k, v = (torch.randn(2, 4, 7, 16, generator=torch.Generator().manual_seed(at)) for at in range(3))
    wide = torch.ones(1, 1, 3, 1025)
    leaf = torch.nested.nested_tensor([torch.ones(3, 8), torch.ones(5, 8)], layout=torch.jagged).unsqueeze(-1).transpose(1, 2)
    return {
        "float64": lambda: sdpa(q.double(), k.double(), v.double()),
        "no queries": lambda: sdpa(q[:, :, :0], k, v),
        "no keys": lambda: sdpa(q, k[:, :, :0], v[:, :, :0]),
        "no sequences": lambda: sdpa(q[:0], k[:0], v[:0]),
        "heads that are broadcast": lambda: sdpa(q, k[:1, :1], v[:1, :1]),
        "five axes": lambda: sdpa(q[None], k[None], v[None]),
        "heads of more than 1,024 numbers": lambda: sdpa(wide, wide, wide),
        "all is dropped": lambda: sdpa(q, k, v, dropout_p=1.0),
        "the math path is asked for": lambda: in_math(q, k, v),
        "no flash kernel": lambda: in_math(q, k, v, SDPBackend.MATH),
        "nested tensors": lambda: sdpa(leaf, leaf, leaf).values(),
        "a float64 mask": lambda: sdpa(q.double(), k.double(), v.double(), attn_mask=torch.zeros(7, 7).double()),
        "float32 masks of half inputs": lambda: sdpa(q.half(), k.half(), v.half(), attn_mask=torch.zeros(7, 7).half().double()),
    }


def in_math(q: Tensor, k: Tensor, v: Tensor, backend: Any = SDPBackend.MATH) -> Tensor:
    with sdpa_kernel(backend):
        return sdpa(q, k, v)


def outcome(run: Callable[[], Tensor]) -> Tensor | tuple[type, str]:
    torch.manual_seed(1)
    try:
        return run()
    except Exception as failed:
        return type(failed), str(failed).splitlines()[0]


@pytest.mark.parametrize("name", forwarded())
def test_what_is_forwarded_has_torchs_bits(name: str, kernel_calls: list[str]) -> None:
    run = forwarded()[name]
    ours = outcome(run)
    plugin.uninstall()
    theirs = outcome(run)
    assert not kernel_calls
    assert type(ours) is type(theirs)
    if isinstance(ours, tuple):
        assert ours == theirs
    else:
        assert ours.dtype is theirs.dtype and torch.equal(ours, theirs) or (ours.isnan() == theirs.isnan()).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda q: sdpa(q, q[..., :5], q),
        lambda q: sdpa(q, q, q, attn_mask=torch.ones(4, 9)),
        lambda q: sdpa(q, q, q, attn_mask=torch.ones(7, 7, dtype=torch.int32)),
        lambda q: sdpa(q, q, q, attn_mask=torch.ones(7, 7, dtype=torch.bool), is_causal=True),
        lambda q: sdpa(q, q[:, :3], q[:, :3], enable_gqa=True),
        lambda q: sdpa(q, q, q.double()),
        lambda q: sdpa(q, q, q, dropout_p=1.5),
        lambda q: sdpa(q.int(), q.int(), q.int()),
        lambda q: sdpa(q[0, 0, 0], q[0, 0, 0], q[0, 0, 0]),
        lambda q: sdpa(q, q.numpy(), q),
    ],
)
def test_bad_inputs_get_torchs_errors(call: Callable[[Tensor], Tensor]) -> None:
    q = torch.randn(2, 4, 7, 16)
    ours = outcome(lambda: call(q))
    plugin.uninstall()
    theirs = outcome(lambda: call(q))
    if isinstance(theirs, tuple):
        assert ours == theirs
    else:  # torch 2.9 takes a mask together with is_causal
        assert torch.equal(ours, theirs)


def test_compiled(kernel_calls: list[str]) -> None:
    def layer(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        return sdpa(q * 2, k, v, attn_mask=mask, dropout_p=0.0) + 1

    torch.manual_seed(2)
    base = [torch.randn(2, t, 3, 16).transpose(1, 2) for t in (7, 11, 11)]
    for mask in (None, torch.rand(7, 11) < 0.7):
        for dynamic in (False, True):
            torch._dynamo.reset()
            compiled = torch.compile(layer, fullgraph=True, dynamic=dynamic, backend="aot_eager")
            mine, theirs = ([one.clone().requires_grad_() for one in base] for _ in range(2))
            output, expected = compiled(*mine, mask), layer(*theirs, mask)
            assert torch.equal(output, expected) and output.stride() == expected.stride()
            output.sin().sum().backward()
            expected.sin().sum().backward()
            for one, other in zip(mine, theirs, strict=True):
                assert error(one.grad, other.grad) < 1e-6
    assert len(kernel_calls) == 16


def test_operators_pass_torchs_check() -> None:
    torch.manual_seed(8)
    q, k, v = torch.randn(2, 3, 7, 16), torch.randn(2, 3, 11, 16), torch.randn(2, 3, 11, 13)
    mask = torch.randn(2, 3, 7, 11)
    for given in ((None, True, None), (mask, False, 0.5)):
        torch.library.opcheck(torch.ops.multihead.attention.default, (q, k, v, *given, None, 0.0, None))
        output, lse = torch.ops.multihead.attention(q, k, v, *given, None, 0.0, None)
        arguments = (torch.randn_like(output), q, k, v, given[0], output, lse, *given[1:], None, 0.0, None, given[0] is not None)
        torch.library.opcheck(torch.ops.multihead.attention_backward.default, arguments)


def test_autocast(kernel_calls: list[str]) -> None:
    q = torch.randn(2, 3, 7, 16)
    with torch.autocast("cpu", torch.bfloat16):
        output = sdpa(q, q, q)
    plugin.uninstall()
    with torch.autocast("cpu", torch.bfloat16):
        expected = sdpa(q, q, q)
    assert output.dtype is expected.dtype and error(output, expected) < 2e-2
    assert kernel_calls == ["torch_attention"]


def test_checkpointing_repeats_what_is_dropped() -> None:
    from torch.utils.checkpoint import checkpoint

    q = torch.randn(2, 3, 19, 16)
    gradients = []
    for run in (lambda f, x: f(x), lambda f, x: checkpoint(f, x, use_reentrant=False)):
        x = q.clone().requires_grad_()
        torch.manual_seed(3)
        run(lambda x: sdpa(x, q, q, dropout_p=0.3), x).sum().backward()
        gradients.append(x.grad)
    assert torch.equal(*gradients)


def test_work_is_counted() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    q = torch.randn(2, 3, 7, 16, requires_grad=True)
    counts = []
    for _ in range(2):
        with FlopCounterMode(display=False) as counter:
            sdpa(q, q, q).sum().backward()
        counts.append(counter.get_total_flops())
        plugin.uninstall()
    assert counts[0] > 0 and counts[1] in (0, counts[0])  # torch 2.9 does not count its own kernel for the CPU


def test_second_derivatives_are_refused_in_one_line() -> None:
    q = torch.randn(1, 2, 5, 8, requires_grad=True)
    (first,) = torch.autograd.grad(sdpa(q, q, q).sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match=r"second derivatives.*SDPBackend\.MATH"):
        first.sum().backward()
    with sdpa_kernel(SDPBackend.MATH):
        (first,) = torch.autograd.grad(sdpa(q, q, q).sum(), q, create_graph=True)
    first.sum().backward()


def test_traces_and_transforms_see_torchs_own() -> None:
    q = torch.randn(2, 3, 7, 16)
    assert "multihead" not in str(torch.jit.trace(lambda q: sdpa(q, q, q), q).graph)
    assert torch.vmap(lambda q: sdpa(q, q, q))(q[None]).shape == (1, 2, 3, 7, 16)
    assert torch.func.grad(lambda q: sdpa(q, q, q).sum())(q).shape == q.shape


@pytest.mark.parametrize("case", ["plain", "average", "padding", "causal", "one text", "other keys", "own sizes"])
def test_multihead_attention_with_weights(case: str, kernel_calls: list[str]) -> None:
    """nn.MultiheadAttention's default: output, weights and the gradients of both."""
    torch.manual_seed(12)
    sizes: dict[str, Any] = {"kdim": 16, "vdim": 24} if case == "own sizes" else {}
    layer = torch.nn.MultiheadAttention(48, 3, batch_first=True, **sizes)
    x, other = torch.randn(4, 7, 48), torch.randn(4, 11, 48)
    inputs: list[Tensor] = [x, other, other] if case == "other keys" else [x, x, x]
    if sizes:
        inputs = [x, torch.randn(4, 11, 16), torch.randn(4, 11, 24)]
    if case == "one text":
        inputs = [one[0] for one in inputs]
    given: dict[str, Any] = {"average_attn_weights": case == "average"}
    if case == "padding":
        given["key_padding_mask"] = torch.arange(7)[None, :] >= torch.tensor([7, 3, 5, 1])[:, None]
    if case == "causal":
        given |= {"attn_mask": torch.nn.Transformer.generate_square_subsequent_mask(7), "is_causal": True}

    def run() -> tuple[Tensor, ...]:
        layer.zero_grad()
        begun = [one.clone().requires_grad_() for one in inputs]
        output, weights = layer(*begun, **given)
        (output.sin().sum() + (weights**2).sum()).backward()
        return output, weights, *(one.grad for one in [*begun, *layer.parameters()])

    ours = run()
    assert kernel_calls == ["torch_attention", "torch_attention_backward"]
    plugin.uninstall()
    for one, expected in zip(ours, run(), strict=True):
        assert error(one, expected) < 1e-5
    assert len(kernel_calls) == 2


def test_multihead_attention_with_dropout_gives_the_weights_of_torch() -> None:
    layer = torch.nn.MultiheadAttention(48, 3, dropout=0.5)
    x = torch.randn(7, 2, 48)
    results = []
    for _ in range(2):
        torch.manual_seed(3)
        results.append(layer(x, x, x))
        plugin.uninstall()
    assert torch.equal(results[0][0], results[1][0]) and torch.equal(results[0][1], results[1][1])
    assert (results[0][1] == 0).any()


def test_install_and_uninstall(kernel_calls: list[str]) -> None:
    q = torch.randn(2, 3, 7, 16)
    plugin.install()
    sdpa(q, q, q)
    plugin.uninstall()
    plugin.uninstall()
    sdpa(q, q, q)
    assert len(kernel_calls) == 1
    with plugin.attention(), plugin.attention():
        sdpa(q, q, q)
    sdpa(q, q, q)
    assert len(kernel_calls) == 2
    with pytest.raises(ZeroDivisionError), plugin.attention():
        1 / 0  # noqa: B018
    sdpa(q, q, q)
    assert len(kernel_calls) == 2


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_beside_another_override(first: str) -> None:
    """Of two overrides the one installed last counts; taking either away leaves the other, in any order."""
    done = python(f"""
        import torch, warnings
        warnings.simplefilter("ignore")
        import multihead.torch as plugin
        from multihead import _native
        import torch.nn.functional as F
        calls, run = [], _native.torch_attention
        _native.torch_attention = lambda *given, **named: (calls.append("ours"), run(*given, **named))
        q = torch.randn(1, 2, 5, 8)
        def other(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
            calls.append("theirs")
            return torch.zeros_like(query)
        def theirs():
            library = torch.library.Library("aten", "IMPL")
            for key in ("CPU", "AutogradCPU"):
                library.impl("scaled_dot_product_attention", other, key, allow_override=True)
            return library
        def seen():
            del calls[:]
            F.scaled_dot_product_attention(q, q, q)
            return calls
        if {first!r} == "ours":
            plugin.install(); held = theirs()
            assert seen() == ["theirs"], calls
            held._destroy()
            assert seen() == ["ours"], calls
            plugin.uninstall()
        else:
            held = theirs(); plugin.install()
            assert seen() == ["ours"], calls
            plugin.uninstall()
            assert seen() == ["theirs"], calls
            held._destroy()
        assert seen() == [], calls
    """)
    assert done.returncode == 0, done.stderr


def test_workers_that_fork() -> None:
    """DataLoader's workers after attention has run here: their own threads compute the same."""
    done = python(
        """
        import multihead.torch, torch
        import torch.nn.functional as F
        multihead.torch.install()
        torch.manual_seed(1)
        q = torch.randn(4, 8, 65, 16)
        expected = F.scaled_dot_product_attention(q, q, q)
        class Data(torch.utils.data.Dataset):
            def __len__(self): return 4
            def __getitem__(self, at): return F.scaled_dot_product_attention(q, q, q)[at]
        for _ in range(2):
            loaded = torch.cat(list(torch.utils.data.DataLoader(Data(), num_workers=2, multiprocessing_context="fork")))
            assert torch.equal(loaded, expected)
            assert torch.equal(F.scaled_dot_product_attention(q, q, q), expected)
        """
    )
    assert done.returncode == 0, done.stderr


def test_without_torch_or_with_an_old_one() -> None:
    done = python("""
        import sys, types
        import multihead
        assert "torch" not in sys.modules and "multihead.torch" not in sys.modules
        sys.modules["torch"] = None
        try:
            import multihead.torch
        except multihead.MissingPackageError as error:
            assert "pip install" in str(error), error
        else:
            raise SystemExit("imported without torch")
        sys.modules["torch"] = types.ModuleType("torch")
        sys.modules["torch"].__version__ = "2.3.1+cpu"
        try:
            import multihead.torch
        except multihead.MissingPackageError as error:
            assert "2.3.1" in str(error) and "2.9" in str(error), error
        else:
            raise SystemExit("imported with an old torch")
    """)
    assert done.returncode == 0, done.stderr


def ragged_case(seed: int) -> tuple[list[Tensor], dict[str, Any], list[list[int]]]:
    """Q, K, V [rows, heads, size], the other arguments of varlen_attn, and the lengths of both sides."""
    at = random.Random(seed)
    torch.manual_seed(seed)
    groups = at.choice([1, 2, 3])
    heads, size, value_size = groups * at.choice([1, 2]), at.choice([8, 13, 16]), at.choice([8, 16])
    count = at.choice([1, 2, 5])
    keys = [at.randrange(1, 43) for _ in range(count)]
    queries = keys if at.random() < 0.5 else [at.randrange(1, 1 + length) for length in keys]
    given: dict[str, Any] = {"window_size": at.choice([(-1, -1), (-1, 0), (3, 0), (2, 5)]), "enable_gqa": heads != groups}
    shapes = [(sum(queries), heads, size), (sum(keys), groups, size), (sum(keys), groups, value_size)]
    return [torch.randn(shape) for shape in shapes], given, [queries, keys]


def offsets(lengths: list[int]) -> Tensor:
    return torch.tensor([0, *lengths]).cumsum(0).int()


def test_varlen_attn() -> None:
    """float32 on the CPU, where torch has nothing: each sequence alone by torch's float64 formula."""
    varlen_attn = pytest.importorskip("torch.nn.attention.varlen").varlen_attn  # from torch 2.10 on

    for seed in range(60):
        inputs, given, (queries, keys) = ragged_case(seed)
        mine = [one.clone().requires_grad_() for one in inputs]
        theirs = [one.double().requires_grad_() for one in inputs]
        output = varlen_attn(*mine, offsets(queries), offsets(keys), max(queries), max(keys), **given)
        parts = []
        for q, k, v in zip(*(one.split(of) for one, of in zip(theirs, (queries, keys, keys), strict=True)), strict=True):
            distance = torch.arange(len(k))[None, :] - torch.arange(len(q))[:, None] - (len(k) - len(q))
            left, right = given["window_size"]
            seen = (distance >= (-left if left >= 0 else -1000)) & (distance <= (right if right >= 0 else 1000))
            parts.append(
                math_path(*(one.transpose(0, 1)[None] for one in (q, k, v)), attn_mask=seen, enable_gqa=True)[0].transpose(0, 1)
            )
        expected = torch.cat(parts)
        assert error(output, expected) <= 2e-6, seed
        d_output = torch.randn(output.shape)
        output.backward(d_output)
        expected.backward(d_output.double())
        scale = max(1.0, *(float(other.grad.abs().max()) for other in theirs))
        for one, other in zip(mine, theirs, strict=True):
            assert error(one.grad, other.grad, scale) <= 1e-5, seed


def test_varlen_attn_refuses_in_one_line() -> None:
    varlen_attn = pytest.importorskip("torch.nn.attention.varlen").varlen_attn

    q, ends = torch.randn(7, 2, 8), offsets([3, 4])
    for inputs, begins, message in (
        ((q, q, q), offsets([3, 5]), "end with the 7 rows"),
        ((q, q, q), offsets([9, -2]), "never fall"),
        ((q, q, q), ends.long(), "int32"),
        ((q.double(), q.double(), q.double()), ends, "float32"),
    ):
        with pytest.raises(ValueError, match=message):
            varlen_attn(*inputs, begins, begins, 4, 4)
    with pytest.raises(ValueError, match="longest is said to have 3"):
        varlen_attn(q, q, q, ends, ends, 3, 4)
    with pytest.raises(ValueError, match="2 sequences and cu_seq_k 1"):
        varlen_attn(q, q, q, ends, offsets([7]), 4, 7)
    plugin.uninstall()
    with pytest.raises(NotImplementedError):
        varlen_attn(q, q, q, ends, ends, 4, 4)


@pytest.mark.parametrize("causal", [False, True])
def test_flash_attn_functions(causal: bool) -> None:
    """On sequences of one length and of several, against torch's formula; causal from the ends, as in flash_attn."""
    from multihead.torch.flash import flash_attn_func, flash_attn_varlen_func

    torch.manual_seed(6)
    q, k, v = torch.randn(3, 7, 6, 16), torch.randn(3, 11, 2, 16), torch.randn(3, 11, 2, 13)
    mine, theirs = ([one.clone().to(kind).requires_grad_() for one in (q, k, v)] for kind in (torch.float32, torch.float64))
    seen = torch.arange(11)[None, :] <= torch.arange(7)[:, None] + 4 if causal else torch.ones(7, 11, dtype=torch.bool)
    output, lse, _ = flash_attn_func(*mine, causal=causal, softmax_scale=0.3, return_attn_probs=True)
    turned = [one.transpose(1, 2) for one in theirs]
    expected = math_path(*turned, attn_mask=seen, scale=0.3, enable_gqa=True).transpose(1, 2)
    scores = 0.3 * turned[0] @ turned[1].repeat_interleave(3, 1).mT
    assert error(output, expected) < 2e-6
    assert error(lse, scores.masked_fill(~seen, -torch.inf).logsumexp(-1)) < 2e-6
    d_output = torch.randn(output.shape)
    output.backward(d_output)
    expected.backward(d_output.double())
    for one, other in zip(mine, theirs, strict=True):
        assert error(one.grad, other.grad) < 1e-5
    ends = [torch.arange(0, 4 * size, size).int() for size in (7, 11)]
    rows = [one.flatten(0, 1) for one in (q, k, v)]
    packed = flash_attn_varlen_func(*rows, *ends, 7, 11, causal=causal, softmax_scale=0.3)
    assert torch.equal(packed, output.flatten(0, 1))
    assert flash_attn_func(*(one.bfloat16() for one in (q, k, v)), softcap=5.0).dtype is torch.bfloat16
    with pytest.raises(ValueError, match="no dropout"):
        flash_attn_func(q, k, v, dropout_p=0.1)
    with pytest.raises(ValueError, match="float64"):
        flash_attn_func(q.double(), k, v)
