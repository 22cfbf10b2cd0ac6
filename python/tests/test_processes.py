"""Ctrl-C, processes, threads, memory."""

from __future__ import annotations

import multiprocessing
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from conftest import SENTENCES, golden, python, real_model

import multihead as mh


@contextmanager
def ctrl_c_after(seconds: float) -> Iterator[None]:
    """And again: a first one that arrives in a callback of the garbage collector, such as hypothesis's, Python itself ignores."""
    over = threading.Event()

    def press() -> None:
        while not over.wait(seconds):
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def embedded(model: mh.Model, text: str) -> list[float]:
    return [float(x) for x in model.embed(text)]


@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_works_in_processes_that_are_spawned() -> None:
    model = mh.load(golden("sentences/modes"))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.starmap(embedded, [(model, text) for text in SENTENCES], chunksize=1)
    np.testing.assert_array_equal(found, model.embed(SENTENCES))


LONG = {
    "translate": lambda demo: demo.translate(SENTENCES * 20000),
    "score": lambda demo: demo.score(SENTENCES * 20000, SENTENCES * 20000),
    "embed": lambda demo: demo.embed(SENTENCES * 20000),
    "observe": lambda demo: list(demo.observe(SENTENCES * 5000)),
    "stats": lambda demo: mh.heads.stats(demo, SENTENCES * 5000),
    "importance": lambda demo: mh.heads.importance(demo, SENTENCES * 5000, by="ablation"),
    "faithfulness": lambda demo: mh.heads.faithfulness(demo, SENTENCES * 1000),
    "view": lambda demo: mh.view(demo, "two dogs run .", corpus_text=SENTENCES * 5000),
    "attention": lambda demo: [mh.attention(*[np.ones((4, 1024, 8, 64), np.float32)] * 3) for _ in range(1000)],
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.filterwarnings("ignore::multihead.Remark")
def test_ctrl_c_ends(demo: mh.Model, name: str) -> None:
    before = demo.translate(SENTENCES)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), ctrl_c_after(0.5):
        LONG[name](demo)
    assert time.monotonic() - begun < 30  # of work that takes minutes
    assert demo.translate(SENTENCES) == before  # nothing is left half


def test_ctrl_c_ends_a_language_model() -> None:
    model = mh.load(real_model("smollm2.gguf"))
    for call in (
        lambda: model.generate(["The sky"] * 4, max_new_tokens=2000),
        lambda: list(model.stream("The sky", max_new_tokens=4000)),
        lambda: mh.heads.circuits(model),
    ):
        with pytest.raises(KeyboardInterrupt), ctrl_c_after(0.5):
            call()


def test_other_signal_handlers_run_meanwhile(demo: mh.Model) -> None:
    class AlarmError(Exception):
        pass

    def ring(*_: object) -> None:
        raise AlarmError

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(AlarmError):
            demo.translate(SENTENCES * 20000)
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of fork in a process of several threads
def test_a_forked_child_computes(demo: mh.Model) -> None:
    expected = demo.translate(SENTENCES)
    child = os.fork()
    if child == 0:
        os._exit(0 if demo.translate(SENTENCES) == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("what", ["goes on", "leaves", "computes"])
def test_a_stream_that_is_in_progress_at_a_fork(what: str) -> None:
    """In the child it goes on, can be left, and does not hinder other work; the parent's goes on, too."""
    done = python(f"""
        import os, warnings
        import multihead as mh
        warnings.simplefilter("ignore")
        model = mh.load({str(golden("generate/gpt2"))!r})
        settings = dict(max_new_tokens=40, seed=5)
        whole = model.generate("the", **settings)
        pieces = model.stream("the", **settings)
        begun = next(pieces) + next(pieces)
        child = os.fork()
        if child == 0:
            right = True
            if {what!r} == "goes on":
                right = begun + "".join(pieces) == whole
            elif {what!r} == "leaves":
                pieces.close()
            else:
                right = model.generate("the", **settings) == whole
            os._exit(0 if right else 1)
        right = begun + "".join(pieces) == whole
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), right)
    """, timeout=60)  # fmt: skip
    assert done.stdout == "0 True\n", done.stderr


def test_remarks_of_a_stream_point_at_its_reader() -> None:
    model = mh.load(golden("generate/gpt2"))
    with pytest.warns(mh.Remark) as told:
        list(model.stream("the " * 100, max_new_tokens=500))
    assert {one.filename for one in told} == {__file__}


@pytest.mark.parametrize("ignored", [False, True])
def test_the_tool_leaves_an_ignored_ctrl_c_ignored(ignored: bool) -> None:
    """As the tool itself: of nohup and of jobs in the background."""
    words = [sys.executable, "-m", "multihead", "translate", "--model", "demo"]
    tool = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.SIG_DFL),
    )  # fmt: skip
    assert tool.stdin is not None and tool.stdout is not None
    tool.stdin.write("two dogs run .\n")
    tool.stdin.flush()
    assert tool.stdout.readline().startswith("zwei Hunde")  # it has set its signals, and waits for more
    tool.send_signal(signal.SIGINT)
    rest, _ = tool.communicate("she sleeps .\n" if ignored else None)
    assert (tool.returncode, bool(rest)) == ((0, True) if ignored else (-signal.SIGINT, False))


def test_threads_share_a_model(demo: mh.Model) -> None:
    expected = demo.translate(SENTENCES)
    found: list[list[str]] = []

    def work(muted: bool) -> None:
        for _ in range(5):
            if muted:
                with demo.edit(mute="*"):
                    demo.translate(SENTENCES)
            else:
                found.append(demo.translate(SENTENCES))

    threads = [threading.Thread(target=work, args=(i % 2 == 0,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 10


def test_results_do_not_depend_on_threads(demo: mh.Model) -> None:
    before = mh.threads()
    try:
        results = []
        for threads in (1, 3):
            mh.set_threads(threads)
            assert mh.threads() == threads
            results.append(demo.embed(SENTENCES).tobytes())
        assert results[0] == results[1]
        with pytest.raises(mh.UsageError, match="threads"):
            mh.set_threads(0)
    finally:
        mh.set_threads(before)


def test_no_memory_is_lost(demo: mh.Model) -> None:
    q = np.ones((1, 16, 2, 8), dtype=np.float32)

    def some() -> None:
        for _ in range(500):
            mh.attention(q, q, q, return_lse=True, return_weights=True)
            with pytest.raises(mh.ShapeError):
                mh.attention(q, q, q[:, :3])
        for _ in range(20):
            demo.observe("two dogs run .")
            demo.gradient("two dogs run .", at="*.gates", target="zwei Hunde laufen .")

    some()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(20):
        some()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024  # KiB, over 10,000 calls


@pytest.mark.parametrize("processor", ["Nehalem", "Haswell"])  # without AVX2, and with it but without AVX-512
def test_older_processors(processor: str) -> None:
    emulator = shutil.which("qemu-x86_64")
    if emulator is None or platform.machine() != "x86_64":
        pytest.skip("there is no qemu-x86_64 (Debian: qemu-user)")
    code = """
        import numpy as np
        import multihead as mh
        mh.set_threads(1)
        q, k, v = np.random.default_rng(1).standard_normal((3, 1, 9, 2, 16)).astype("float32")
        y = mh.attention(q, k, v)
        weights = np.exp(np.einsum("bihd,bjhd->bhij", q, k) / 4)
        weights /= weights.sum(-1, keepdims=True)
        assert np.abs(y - np.einsum("bhij,bjhd->bihd", weights, v)).max() < 1e-5
        print(mh.demo().translate("two dogs run ."))
    """
    words = [emulator, "-cpu", processor, sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("zwei Hunde")


def test_runs_as_the_tool() -> None:
    done = subprocess.run([sys.executable, "-m", "multihead", "--version"], capture_output=True, text=True, check=True)
    assert mh.__version__ in done.stdout
    done = subprocess.run([sys.executable, "-m", "multihead", "translate", "--model", "nowhere"], input="a", capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 1 and done.stderr.startswith("multihead: no model folder nowhere")


def test_import_needs_numpy_alone() -> None:
    done = python("""
        import sys
        import multihead
        print([name for name in ("torch", "transformers", "pandas", "tqdm", "IPython", "matplotlib") if name in sys.modules])
    """)
    assert done.stdout == "[]\n", done.stderr


def test_import_leaves_out_what_only_some_calls_need() -> None:
    done = python("""
        import sys
        import numpy
        before = set(sys.modules)
        import multihead
        print([name for name in ("html", "logging", "pathlib", "queue", "shutil") if name in set(sys.modules) - before])
    """)
    assert done.stdout == "[]\n", done.stderr
