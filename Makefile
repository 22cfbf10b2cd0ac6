# The commands of the README. Everything else is CMake: see CMakePresets.json.
BUILD ?= build
JOBS ?= $(shell nproc)
# More for CMake, e.g. FLAGS=-DMULTIHEAD_WERROR=ON.
FLAGS ?=
CONFIGURE = cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release $(FLAGS)

.PHONY: demo test test-build test-fast tool mpi wasm packages packages-test bench oracles format

demo: tool
	$(BUILD)/multihead demo
	@echo "To play with, in a browser: docs/answers/play/*.html"

tool: packages
	@$(CONFIGURE) -DMULTIHEAD_TESTS=OFF -DMULTIHEAD_EXAMPLES=OFF > $(BUILD).log || { cat $(BUILD).log; exit 1; }
	@cmake --build $(BUILD) -j $(JOBS) --target multihead_cli

# The tool with MPI, for trainings by several processes (docs/verbs/train.md).
mpi:
	@scripts/packages build mpi
	@$(CONFIGURE) -DMULTIHEAD_MPI=ON -DMULTIHEAD_EXAMPLES=OFF > $(BUILD).log || { cat $(BUILD).log; exit 1; }
	@cmake --build $(BUILD) -j $(JOBS) --target multihead_cli

# The library as a module for pages in a browser (web/README.md); needs Debian's emscripten.
wasm: packages
	@scripts/wasm $(BUILD)

test-build: packages-test
	@$(CONFIGURE) -DMULTIHEAD_TESTS=ON -DMULTIHEAD_EXAMPLES=ON > $(BUILD).log || { cat $(BUILD).log; exit 1; }
	@cmake --build $(BUILD) -j $(JOBS)

test-fast: LABEL = -L fast
test test-fast: test-build
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) $(LABEL); status=$$?; tests/summary $(BUILD); exit $$status

packages:
	@scripts/packages build

packages-test:
	@scripts/packages build test

# Our figures beside the peers'; needs the virtual environment of `make oracles`. Writes benchmarks/results.
bench: packages-test
	@$(CONFIGURE) -DMULTIHEAD_BENCHMARKS=ON > $(BUILD).log || { cat $(BUILD).log; exit 1; }
	@cmake --build $(BUILD) -j $(JOBS)
	scripts/bench $(BUILD)

# Makes the golden files of tests/goldens again with torch, transformers, tokenizers and sacrebleu, and compares live.
oracles: packages-test
	@$(CONFIGURE) -DMULTIHEAD_TESTS=ON > $(BUILD).log || { cat $(BUILD).log; exit 1; }
	@cmake --build $(BUILD) -j $(JOBS)
	scripts/oracles $(BUILD)

format:
	scripts/format --write
