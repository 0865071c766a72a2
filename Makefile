# The few commands of this project. `make help` lists them.
# On Windows, which has no make: README.md names the commands behind `run`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# what is ours and is there: the folders grow with the project
CODE := $(wildcard app backends bench guide installers scripts testbed tests)
SETUP := $(PYTHON) -m scripts.setup
AUDIT := .venv-audit
# More than a small computer has cores: half of the time a test waits, for nodes that start, or for a deadline.
WORKERS ?= 3

# An empty HOME would make tools write below /: it counts as none.
ifeq ($(strip $(HOME)),)
unexport HOME
endif

# Several processes on a busy computer may miss a moment; a fault of ours is there again where nothing runs beside it.
again = echo "== what failed above, once more and alone: it must pass now" && \
  $(BIN)/python -m pytest --last-failed --last-failed-no-failures none --maxfail 1 -m "$1"

.DEFAULT_GOAL := help
.PHONY: help run demo test long real engines servers cards phone check faults hostile fuzz props soak sim families families-proof fuzz-api audit api-compare call-compare
.PHONY: installers installers-test templates thought-compare bench guide draft format
.PHONY: translations architecture screenshots endure lock setup engine clean

# One line of the help: a target's name, and what stands behind its two hashes.
told = printf '  make %-15s %s\n' "$1" "$$(sed -nE "s/^$1:.*\#\# //p" $(MAKEFILE_LIST))"

help: ## list the targets
	@echo "To use Poolhouse and check that it works:"
	@for name in run demo test; do $(call told,$$name); done
	@echo "To change it (the Makefile lists the options, such as ARGS):"
	@for name in $$(grep -hoE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | cut -d: -f1); do \
	  case $$name in run|demo|test) ;; *) $(call told,$$name);; esac; done

run: setup ## set up, then open Poolhouse (without a screen: the demo)
	@if $(BIN)/python -c 'import sys; from app.cli.welcome import has_screen; sys.exit(not has_screen())'; \
	then $(BIN)/poolhouse; \
	else echo "There is no screen here, so this is the demo: several nodes on this computer, one answer."; \
	  $(BIN)/poolhouse demo; fi

demo: setup ## three nodes here share one model and answer a question
	@$(BIN)/poolhouse demo

# What is tested at once: $1, the words for pytest's -m.
tested = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=20 -m "$1" || \
  if [ $$? -eq 1 ]; then $(call again,$1); else exit 1; fi
QUICK := not long and not alone and not real and not engines and not servers and not cards and not phone and not installers
LONG := long and not alone and not real and not engines and not servers and not cards and not phone and not installers

test: check ## all checks, and all tests but the long ones (15 minutes)
	@echo "== tests, $(WORKERS) at once (WORKERS=…)"
	@$(call tested,$(QUICK))
	@echo "== the long tests and those on real weights are apart: make long, make real"

long: dev ## the long tests: families, simulations, whole households
	@echo "== long tests, $(WORKERS) at once (WORKERS=…)"
	@$(call tested,$(LONG))
	@echo "== tests that measure time, one at a time"
	@$(BIN)/python -m pytest -m alone || \
	if [ $$? -eq 1 ]; then $(call again,alone); else exit 1; fi

real: dev ## tests on public models: a 331 MB download, six minutes
	@$(BIN)/python -m scripts.real_models
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=10 -m real tests/real || \
	if [ $$? -eq 1 ]; then $(call again,real); else exit 1; fi

# POOLHOUSE_VULKAN=PATH takes that libggml-vulkan.so instead of the pack in build/engines, or of building one.
cards: dev ## tests on Mesa's software Vulkan device (15 minutes)
	@if [ -z "$$POOLHOUSE_VULKAN" ] && ! find build/engines -name libggml-vulkan.so 2>/dev/null | grep -q .; then \
	  $(BIN)/python -m scripts.engine_pack vulkan; fi
	@$(BIN)/python -m pytest -n 2 --dist load --durations=10 -m cards tests/cards || \
	if [ $$? -eq 1 ]; then $(call again,cards); else exit 1; fi

# torch and MLX have an environment of their own, as people have them: the base installation never needs them.
ENGINES := .venv-engines
# its build for processors runs on Linux what Macs run on Metal
MLX := mlx[cpu]==0.32.4
# ARGS="-k llama"
engines: dev $(ENGINES)/ready ## tests of PyTorch and MLX on the processor (four minutes)
	@$(BIN)/python -m pytest --durations=5 -m engines tests/engines $(ARGS) || \
	if [ $$? -eq 1 ]; then $(call again,engines); else exit 1; fi

servers: dev ## tests beside llama.cpp's own server, compiled first
	@$(BIN)/python -m scripts.real_models
	@$(BIN)/python -m scripts.llama_server
	@$(BIN)/python -m pytest --durations=5 -m servers tests/servers $(ARGS) || \
	if [ $$? -eq 1 ]; then $(call again,servers); else exit 1; fi

$(ENGINES)/ready: Makefile
	$(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/bin/python -m pip install $(TORCH) "$(MLX)"
	@touch $@

# POOLHOUSE_PHONE_PICTURES=FOLDER takes pictures of the page in both palettes.
phone: dev ## tests of the phones' chat in two browsers (two minutes)
	@$(BIN)/python -m pytest --durations=5 -m phone tests/web || \
	if [ $$? -eq 1 ]; then $(call again,phone); else exit 1; fi

# ARGS="deb --version 0.2.0"; ARGS=windows builds that for Windows
installers: dev $(AUDIT)/ready ## build the installers for Linux into dist/
	@$(BIN)/python -m installers $(ARGS)

# Needs root, and the packages that docs/installers.md lists.
# ARGS="--built -k appimage" tries only that, and builds nothing again.
installers-test: dev $(AUDIT)/ready ## try the built installers on clean systems (40 minutes)
	@$(BIN)/python -m tests.installers $(ARGS)

check: dev ## all checks without the tests
	@echo "== format"
	@$(BIN)/ruff format --check $(CODE)
	@echo "== lint"
	@$(BIN)/ruff check $(CODE)
	@echo "== types"
	@$(BIN)/mypy --num-workers 2 $(CODE)
	@echo "== import contracts"
	@$(BIN)/lint-imports
	@echo "== CI workflows"
	@$(BIN)/zizmor --offline --pedantic --quiet .github/workflows

# ENGINE=0.3.37 compares with that version, compiled into an environment of its own.
# ENGINE=VERSION: what that engine version changes
families-proof: dev ## prove every model family; write docs/families.md
ifdef ENGINE
	@$(MAKE) --no-print-directory build/engine-$(ENGINE)/ready
	@$(BIN)/python -m tests.families.report --with build/engine-$(ENGINE)/bin/python
else
	@$(BIN)/python -m tests.families.report
endif

build/engine-%/ready: requirements/run.txt
	$(PYTHON) -m venv build/engine-$*
	build/engine-$*/bin/python -m pip install --no-deps --require-hashes -r requirements/run.txt
	CMAKE_ARGS="$$($(PYTHON) -c 'from scripts.setup import CMAKE_ARGS; print(CMAKE_ARGS)')" \
	  build/engine-$*/bin/python -m pip install --no-deps llama-cpp-python==$*
	@touch $@

# ARGS="--resume --only kills --minutes 20", "--page", or "--soak 1440", faster with "--every 0". Each run is
# kept in docs/faults.jsonl; the table is docs/faults.md.
faults: dev ## inject faults and attacks under running answers
	@$(BIN)/python -m tests.faults $(ARGS)

# ARGS="--role guest --name form --n 20 --minutes 20", or "--page". A thousand runs; each is kept in
# docs/hostile.jsonl, the table is docs/hostile.md.
hostile: dev ## set hostile members and strangers on running nodes
	@$(BIN)/python -m tests.hostile $(ARGS)

# ARGS=all: every part, in hours; ARGS=--help lists the parts
bench: setup ## compare with one machine and llama.cpp RPC (10 minutes)
	@$(BIN)/python -m bench $(ARGS)

# ARGS="--seconds 60". Inputs that reach new lines are kept.
fuzz: dev ## fuzz every parser of bytes from strangers
	@$(BIN)/python -m tests.fuzz $(ARGS)

# ARGS="--from 2000 --count 500 --resume"
soak: dev ## simulate faults over 10,000 seeds
	@$(BIN)/python -m tests.simulation --count 10000 $(ARGS)

# EXAMPLES=N: 10,000 by default
props: dev ## check the properties of tests with many examples
	@POOLHOUSE_EXAMPLES=$(or $(EXAMPLES),10000) $(BIN)/python -m pytest -q --timeout=0 -m hypothesis tests

# SEED=N
sim: dev ## play one seed of the simulation and tell its story
	@$(BIN)/python -m tests.simulation $(SEED)

format: dev ## format all code
	@$(BIN)/ruff check --fix $(CODE)
	@$(BIN)/ruff format $(CODE)

translations: dev ## collect the window's texts for translators
	@$(BIN)/python -m scripts.translations

architecture: dev ## draw the packages into docs/architecture.svg and .md
	@$(BIN)/python -m scripts.architecture

# ARGS="--scale 1.5 --only ten"
# ARGS="--only real" takes those of README, with a model of `make real`.
screenshots: dev ## draw every page in both palettes into build/screenshots
	@$(BIN)/python -m scripts.screenshots $(ARGS)

# ARGS="--minutes 3"
endure: dev ## use the window for half an hour; report memory and leaks
	@$(BIN)/python -m scripts.endurance $(ARGS)

setup: ## make .venv and compile the engine, if anything changed
	@$(SETUP)

# ARGS="--jobs 1"; for CUDA also "--architectures 86;89"
engine: setup ## build an engine pack: make engine BACKEND=vulkan
	@$(BIN)/python -m scripts.engine_pack $(or $(BACKEND),vulkan) $(ARGS)

.PHONY: dev
dev:
	@$(SETUP) --dev

# The Guide's training has an environment of its own, because torch is large and nothing else needs it.
# What the steps write on their way stays in build/guide.
GUIDE := .venv-guide
TORCH := torch==2.13.0
guide: setup $(GUIDE)/ready ## train the built-in model again (hours on two cores)
	@$(GUIDE)/bin/python -m guide.tokenizer
	@$(GUIDE)/bin/python -m guide.train
	@$(GUIDE)/bin/python -m guide.export
	@$(BIN)/python -m guide.score

# A small model that writes ahead of SmolLM2, for `bench speculation`. What the steps write stays in build/drafts.
draft: setup $(GUIDE)/ready ## train a draft model for SmolLM2 (half an hour)
	@$(BIN)/python -m scripts.real_models
	@model=$$($(BIN)/python -c 'from scripts.real_models import SMOLLM2, folder; print(folder() / SMOLLM2.file)') && \
	$(GUIDE)/bin/python -m scripts.drafts.teacher "$$model" && \
	$(GUIDE)/bin/python -m scripts.drafts.train "$$model" && \
	$(BIN)/python -m scripts.drafts.export "$$model"

# So have the tiny models of tests/families: transformers makes them, llama.cpp's own converter writes them.
FAMILIES := .venv-families
# ARGS="llama gemma2" makes only these
families: $(FAMILIES)/ready ## make the tiny models of tests/families again
	@$(FAMILIES)/bin/python -m scripts.families $(ARGS)

$(FAMILIES)/ready: Makefile requirements/build.txt requirements/families.txt
	$(PYTHON) -m venv $(FAMILIES)
	$(FAMILIES)/bin/python -m pip install --no-deps --require-hashes \
	  -r requirements/build.txt -r requirements/families.txt
	$(FAMILIES)/bin/python -m pip install $(TORCH)
	@touch $@

$(GUIDE)/ready: Makefile requirements/run.txt requirements/guide.txt
	$(PYTHON) -m venv $(GUIDE)
	$(GUIDE)/bin/python -m pip install --no-deps --require-hashes \
	  -r requirements/run.txt -r requirements/guide.txt
	$(GUIDE)/bin/python -m pip install $(TORCH)
	@touch $@

# Writes the locks. Releases younger than a week are left out: poisoned ones are found within days.
# Left out of run.txt: requests and what it needs, which gguf names for downloads that we never ask it for; and what
# httpx2 needs in a browser.
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-header --no-annotate --exclude-newer "1 week"
NOT_NEEDED := requests charset-normalizer certifi httpx2-jsfetch
lock: ## write requirements/ from pyproject.toml (needs uv)
	$(LOCK) $(NOT_NEEDED:%=--no-emit-package %) pyproject.toml -o requirements/run.txt
	$(LOCK) --no-deps --group engine -o requirements/engine.txt
	$(LOCK) --group build -o requirements/build.txt
	$(LOCK) -c requirements/run.txt --group dev -o requirements/dev.txt
	$(LOCK) --no-deps --no-emit-package torch --group guide -o requirements/guide.txt
	$(LOCK) --no-deps --group real -o requirements/real.txt
	$(LOCK) --no-deps --group cuda13 -o requirements/cuda13.txt
	$(LOCK) --no-deps --group cuda12 -o requirements/cuda12.txt
	$(LOCK) --no-deps --group wine -o requirements/wine.txt
	$(LOCK) --group fuzz -o requirements/fuzz.txt
	$(LOCK) --group audit -o requirements/audit.txt
	$(LOCK) -c requirements/build.txt --no-emit-package packaging --group families -o requirements/families.txt

# What fuzzes the Chat API has an environment of its own: it pulls in much, and nothing else needs it.
FUZZ := .venv-fuzz
# ARGS="--seconds 60"
fuzz-api: setup $(FUZZ)/ready ## run schemathesis against the Chat API for five minutes
	@$(BIN)/python -m scripts.fuzz_api --tool $(FUZZ)/bin/schemathesis $(ARGS)

$(FUZZ)/ready: requirements/fuzz.txt
	$(PYTHON) -m venv $(FUZZ)
	$(FUZZ)/bin/python -m pip install --no-deps --require-hashes -r requirements/fuzz.txt
	@touch $@

# What looks for known flaws in what we install has an environment of its own: none of it is ours to ship.
audit: $(AUDIT)/ready ## check all shipped packages for known vulnerabilities
	@$(AUDIT)/bin/pip-audit --no-deps --disable-pip --progress-spinner off --desc off \
	  -r requirements/run.txt -r requirements/engine.txt -r requirements/build.txt

$(AUDIT)/ready: requirements/audit.txt
	$(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/python -m pip install --quiet --no-deps --require-hashes -r requirements/audit.txt
	@touch $@

# ARGS="--jobs 1", or "--build FOLDER" if it is already compiled; otherwise compiles llama.cpp first
api-compare: dev ## record what llama.cpp's server answers, for the tests
	@$(BIN)/python -m scripts.api_compare $(ARGS)

# ARGS as for api-compare. Also writes docs/tools.md.
call-compare: dev ## record how llama.cpp parses tool calls, for the tests
	@$(BIN)/python -m scripts.call_compare $(ARGS)

# ARGS="--page": only the page docs/templates.md; or as for api-compare
templates: dev ## record how llama.cpp renders chat templates
	@$(BIN)/python -m scripts.template_compare $(ARGS)

# ARGS as for api-compare
thought-compare: dev ## record how llama.cpp parses thoughts, for the tests
	@$(BIN)/python -m scripts.thought_compare $(ARGS)

clean: ## remove what was built; keep models, chats and the Guide
	rm -rf $(VENV) $(GUIDE) $(FUZZ) $(FAMILIES) $(ENGINES) $(AUDIT) dist *.egg-info .mypy_cache .ruff_cache .pytest_cache \
	  .import_linter_cache .hypothesis
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
