# On a machine with Python, a C++ compiler and make:  make demo   make test
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# an editable install knows the Python files by name: it is made anew when one comes or goes
NAMES := $(shell find src -name '*.py' | LC_ALL=C sort | cksum | cut -d' ' -f1)
STAMP := $(VENV)/.installed-$(NAMES)
NATIVE := CMakeLists.txt $(wildcard native/*/*)
# Chromium comes while the core is built
MAKEFLAGS += -j2

.PHONY: demo test test-all test-sanitized lists mutants lint types browser site wheel bench clean

demo: $(STAMP)
	$(BIN)/python examples/three_masses.py

PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

# what every landing needs; what is marked slow says the same again with more numbers
test: $(STAMP) lint types browser
	$(PYTEST) -m "not slow"

test-all: $(STAMP) lint types browser
	$(PYTEST)
	$(MAKE) test-sanitized

# the native core with the address and undefined-behaviour sanitizers, under the tests that exercise it most;
# Python itself is not instrumented, so their runtime is preloaded; -S: the editable install stays out of the way
SANITIZED := build/sanitized
SITE = $(shell $(BIN)/python -c "import sysconfig; print(sysconfig.get_path('platlib'))")
test-sanitized: $(STAMP)
	rm -rf $(SANITIZED)
	MAKEFLAGS= $(BIN)/python -m pip install --quiet --no-deps --target $(SANITIZED) -C cmake.define.HOCKET_SANITIZE=ON .
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=$(SANITIZED):$(SITE) \
	  $(BIN)/python -S -m pytest -q -s -p no:cacheprovider tests/native tests/energy -m "not slow" \
	  tests/simulators/test_fmu_instants.py tests/simulators/test_fmu_exchange_clocks.py tests/simulators/test_fmu_events.py \
	  tests/engine/test_instants.py tests/scenarios/test_can_bus.py \
	  --deselect tests/native/test_loop.py::test_the_loop_allocates_nothing

# what docs hold of the source: the schema of scenario files, a line about every module; tutorials as notebooks
lists: $(STAMP)
	$(BIN)/hocket schema > docs/hocket.schema.json
	$(BIN)/hocket schema --answers > docs/hocket.answers.schema.json
	$(BIN)/python tools/house.py --publish
	$(BIN)/python tools/notebooks.py

# changes the source in one place at a time, in a copy, and says which changes no test notices
mutants: $(STAMP)
	$(BIN)/python tools/mutants.py --sample 200 --seconds 3600 --results build/mutants.jsonl

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror native/*/*.?pp tests/native/*.cpp

# the pages of reports are tested in Chromium; HOCKET_NO_BROWSER=1 does without
browser:
	@test -n "$$HOCKET_NO_BROWSER" || command -v chromium >/dev/null \
	  || { apt-get update -qq; apt-get install -qq -y --no-install-recommends chromium >/dev/null; }

types: $(STAMP)
	$(BIN)/mypy

# the documentation site, in build/site; any warning is an error
site: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

bench: $(STAMP)
	$(BIN)/python benchmarks/loop.py

# the source distribution, and a wheel for glibc 2.28 or newer, in dist/; needs no development environment
wheel:
	$(PYTHON) tools/wheel.py

# -e: the Python files are used where they are; the compiled core is built anew when its sources change.
# Bytecode is written here, as for every installed package: where PYTHONDONTWRITEBYTECODE is set, each start would compile all modules
$(STAMP): pyproject.toml $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	MAKEFLAGS= $(BIN)/python -m pip install --quiet -e ".[dev]"
	$(BIN)/python -m compileall -q src/hocket
	rm -f $(VENV)/.installed-*
	touch $(STAMP)

clean:
	rm -rf $(VENV) build dist out runs
