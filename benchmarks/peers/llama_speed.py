"""The speed of llama.cpp or ik_llama.cpp on a GGUF file, a program that answers commands as ours do (benchmarks/beside_peer.h):

    python benchmarks/peers/llama_speed.py LIBRARY FILE [SETTING...]

LIBRARY is llama_cpp or ik_llama_cpp, SETTING flash (attention) or, of ik_llama_cpp, repack (weights at loading). Commands:

    prompt TOKENS       -> seconds to read a prompt of so many tokens and have the logits of what comes next
    streams COUNT NEW   -> seconds for NEW tokens after each of COUNT prompts of 16 tokens, greedy
    loading             -> seconds that opening the file and reading one token took
    memory              -> MiB this process held at most, with the pages it touched of a file that is mapped
"""

import ctypes
import importlib
import sys
import time

import numpy as np

THREADS = 2
CONTEXT = 8192


def contents(batch, tokens, positions, sequences, logits):
    batch.n_tokens = len(tokens)
    for i, token in enumerate(tokens):
        batch.token[i], batch.pos[i] = token, positions[i]
        batch.n_seq_id[i], batch.seq_id[i][0] = 1, sequences[i]
        batch.logits[i] = 1 if logits[i] else 0


class Llama:
    def __init__(self, library, file, settings):
        start = time.perf_counter()
        self.api = importlib.import_module(library)
        if library == "ik_llama_cpp":
            self.api = importlib.import_module("ik_llama_cpp._ctypes_api")
        self.api.llama_backend_init()
        model = self.api.llama_model_default_params()
        model.n_gpu_layers = 0
        if library == "ik_llama_cpp":
            model.repack_tensors = "repack" in settings
        self.model = self.api.llama_model_load_from_file(file.encode(), model)
        options = self.api.llama_context_default_params()
        options.n_ctx, options.n_batch, options.n_ubatch = CONTEXT, 512, 512
        options.n_seq_max = 8
        options.n_threads = options.n_threads_batch = THREADS
        if library == "ik_llama_cpp":
            options.flash_attn = "flash" in settings
        else:
            options.flash_attn_type = 1 if "flash" in settings else 0
            options.kv_unified = True
        self.context = self.api.llama_init_from_model(self.model, options)
        if not self.model or not self.context:
            raise SystemExit(f"{library} does not open {file}")
        vocabulary = self.api.llama_model_get_vocab(self.model)
        self.vocabulary = self.api.llama_vocab_n_tokens(vocabulary)
        self.batch = self.api.llama_batch_init(512, 0, 1)
        self.random = np.random.default_rng(7)
        self.decode([1], [0], [0], [True])
        self.logits(0)
        self.seconds_to_load = time.perf_counter() - start

    def forget(self):
        if hasattr(self.api, "llama_kv_cache_clear"):
            self.api.llama_kv_cache_clear(self.context)
        else:
            self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)

    def decode(self, *rows):
        contents(self.batch, *rows)
        if self.api.llama_decode(self.context, self.batch) != 0:
            raise SystemExit("llama_decode failed")

    def logits(self, row):
        at = self.api.llama_get_logits_ith(self.context, row)
        at = ctypes.cast(at, ctypes.POINTER(ctypes.c_float))
        return np.ctypeslib.as_array(at, (self.vocabulary,))

    def prompt(self, count):
        tokens = [int(t) for t in self.random.integers(3, self.vocabulary, count)]
        self.forget()
        start = time.perf_counter()
        self.decode(tokens, range(count), [0] * count, [i + 1 == count for i in range(count)])
        self.logits(count - 1)
        return time.perf_counter() - start

    def streams(self, count, new):
        self.forget()
        tokens = [int(t) for t in self.random.integers(3, self.vocabulary, 16 * count)]
        last = [16 * i + 15 for i in range(count)]
        self.decode(tokens, [i % 16 for i in range(16 * count)], [i // 16 for i in range(16 * count)],
                    [i in last for i in range(16 * count)])
        words = [int(self.logits(row).argmax()) for row in last]
        start = time.perf_counter()
        for step in range(new):
            self.decode(words, [16 + step] * count, list(range(count)), [True] * count)
            words = [int(self.logits(row).argmax()) for row in range(count)]
        return time.perf_counter() - start

    def memory(self):
        with open("/proc/self/status") as status:
            return next(float(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))

    def answer(self, what, rest):
        if what == "prompt":
            return self.prompt(int(rest[0]))
        if what == "streams":
            return self.streams(int(rest[0]), int(rest[1]))
        if what == "loading":
            return self.seconds_to_load
        if what == "memory":
            return self.memory()
        raise SystemExit(f"unknown command: {what}")


def main():
    library, file, *settings = sys.argv[1:]
    llama = Llama(library, file, settings)
    for line in sys.stdin:
        what, *rest = line.split()
        print(f"{llama.answer(what, rest):.9f}", flush=True)


if __name__ == "__main__":
    main()
