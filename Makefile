# Two commands matter: `make images` and `make test`. `make help` lists the rest.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Without byte code each process that a test starts compiles its modules anew.
export PYTHONDONTWRITEBYTECODE :=

VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_VENV ?= .venv-docs
DOCS_READY := $(DOCS_VENV)/.ready
ORTIMG := $(BIN)/ortimg
TOOLS := $(or $(ORTIMG_TOOLS),$(HOME)/.cache/ortimg-tools)/bin
UV_COMPILE := $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11

.PHONY: help
help: ## Show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

.PHONY: images
images: engine ## Build and verify every image whose inputs can be had
	@$(ORTIMG) build --available

.PHONY: test
test: lint test-unit test-docker test-docs ## Run the linters and the tests, those on a real engine and the blocks of the guide that need no GPU

.PHONY: engine
engine: $(READY) ## See to a container engine: use the one that is there, or install and start one
	@$(ORTIMG) engine start

.PHONY: engine-stop
engine-stop: $(READY) ## Stop the engine, if `make engine` started it
	@$(ORTIMG) engine stop

.PHONY: venv
venv: $(READY) ## Make the virtual environment

# Every requirement is pinned by hash; the package itself is installed as a link to this folder.
$(READY): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: Python 3.11 or newer is needed, $(PYTHON) is older: make PYTHON=python3.12 …" >&2; exit 3; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || scripts/install-venv.sh
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: lint
lint: $(READY) actionlint ## Check style, types, generated files, Dockerfiles and workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(ORTIMG) render --check
	$(BIN)/hadolint dockerfiles/*/Dockerfile examples/*/Dockerfile
	$(TOOLS)/actionlint -shellcheck= .github/workflows/*.yml

.PHONY: actionlint
actionlint: # from Go's module proxy; the first time takes a minute or two
	@scripts/go-tools.sh actionlint

.PHONY: compiler
compiler: # what the tests make libraries with
	@command -v cc >/dev/null || scripts/install-compiler.sh

.PHONY: registry
registry: # what the tests push to: two implementations; the second from Go's module proxy, once, in about a minute
	@command -v docker-registry >/dev/null || scripts/install-registry.sh
	@scripts/go-tools.sh crane

.PHONY: clock
clock: # what sets a command's clock back
	@command -v faketime >/dev/null || scripts/install-faketime.sh

.PHONY: mandoc
mandoc: # what judges the man pages
	@command -v mandoc >/dev/null || scripts/install-mandoc.sh

.PHONY: test-unit
test-unit: $(READY) compiler mandoc ## Run the tests that need no engine (seconds)
	$(BIN)/pytest -q -n auto tests/unit tests/golden

.PHONY: test-docker
test-docker: engine compiler registry clock ## Run the tests on a real engine, with real inputs
	$(BIN)/pytest -q tests/docker

.PHONY: test-gpu
test-gpu: $(READY) ## Run the tests that need an NVIDIA GPU
	$(BIN)/pytest -q tests/gpu

.PHONY: test-docs
test-docs: engine ## Run the blocks of the guide, each where it says that it is run (needs the images)
	$(BIN)/pytest -q -n 2 --dist worksteal tests/docs

.PHONY: test-fleet
test-fleet: engine registry ## Run the tests on two BuildKit daemons and a registry (some minutes, 20 GB; needs root)
	@scripts/check-manifests.sh
	@scripts/go-tools.sh buildkitd
	$(BIN)/pytest -q -s tests/fleet

.PHONY: test-browser
test-browser: $(READY) $(DOCS_READY) ## Look at the page of `ortimg report` and at the docs site in Chromium (installs it, and checkers from npm)
	@scripts/install-browser.sh
	$(BIN)/pytest -q tests/browser

.PHONY: bench
bench: $(READY) registry ## Measure against the naive way and the limit, in engines of its own (root, 40 minutes, 25 GB)
	$(BIN)/python -m bench $(if $(PARTS),--parts "$(PARTS)") $(if $(CELLS),--cells "$(CELLS)") $(if $(AGAIN),--again)

.PHONY: render
render: $(READY) ## Write the Dockerfiles from images.yaml and templates/
	@$(ORTIMG) render

.PHONY: man
man: $(READY) ## Write the man pages from what `--help` says (read one: `man -l man/ortimg.1`)
	$(BIN)/python scripts/make_man.py

# An environment of its own: what makes the site is no business of the tests.
$(DOCS_READY): requirements/docs.txt
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || scripts/install-venv.sh
	$(PYTHON) -m venv --clear $(DOCS_VENV)
	$(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

.PHONY: docs
docs: $(DOCS_READY) ## Build the docs site into build/site, English and Chinese; a broken link is an error
	@$(DOCS_VENV)/bin/python scripts/make_site.py

.PHONY: docs-serve
docs-serve: docs ## Show the docs site on http://127.0.0.1:8000
	@$(PYTHON) -m http.server --bind 127.0.0.1 --directory build/site 8000

.PHONY: requirements
requirements: $(READY) ## Update the hashed requirements to the newest versions that fit
	$(UV_COMPILE) --upgrade --python-platform x86_64-manylinux_2_28 requirements/tools.in -o ortimg/context/tools/requirements.txt
	$(UV_COMPILE) --upgrade pyproject.toml requirements/dev.in -o requirements/dev.txt
	$(UV_COMPILE) --upgrade requirements/docs.in -o requirements/docs.txt

.PHONY: wheel
wheel: $(READY) ## Build the wheel into dist/
	$(BIN)/python -m build --quiet --wheel --no-isolation

.PHONY: clean
clean: ## Remove what these commands made here (not the cache, not the images)
	rm -rf $(VENV) $(DOCS_VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
