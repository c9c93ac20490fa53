# Everything a person or a build runs. Needs make, git and Python 3.11 or newer; the rest is installed into .venv.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
  "$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)

VENV := .venv
BIN := $(VENV)/bin
KEY := $(firstword $(shell cksum pyproject.toml))
RUNTIME := $(VENV)/.runtime-$(KEY)
DEV := $(VENV)/.dev-$(KEY)
CHARTS := $(VENV)/.charts-$(KEY)
REPORT := build/requirements.json
HOSTS := build/hosts
ADAPTERS := build/adapters
# These take a path to data of their own as an argument, are long unless --quick, or are parts of others.
BENCHMARKS := $(filter-out %_adapter.py %_page.py %_sets.py benchmarks/answers.py benchmarks/extraction.py benchmarks/import_speed.py benchmarks/index_speed.py benchmarks/simulated_year.py \
  benchmarks/quality.py benchmarks/recall_speed.py benchmarks/retrieval.py benchmarks/speed.py benchmarks/stores.py benchmarks/window.py benchmarks/writes.py,$(wildcard benchmarks/*.py))
SIZES ?= 1000,10000,100000
# Quiet about warnings, which a machine's own settings can give for each package; errors are shown.
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
# Bytecode is written: each worker and each process of a test would compile the package and its tests anew.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n auto

.PHONY: help setup setup-runtime demo test check house format-check lint types contracts site-check requirements bench bench-million bench-rest soak test-mcp test-adapters test-adapters-full fuzz docs format clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | awk -F'|' '{printf "%-24s%s\n", $$1, $$2}'

setup: $(DEV) ## install the package and every development tool into .venv

setup-runtime: $(RUNTIME) ## install only the package into .venv

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Ricordo needs Python 3.11 or newer, and none was found." \
	  "Install one, or name it: make PYTHON=/path/to/python3"; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Ricordo needs Python 3.11 or newer;" \
	  "$(PYTHON) is $$("$(PYTHON)" -V 2>&1)."; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) has no venv module." \
	  "On Debian and Ubuntu it is a package of its own: apt install python3-venv"; exit 1; }
	@echo "Making $(VENV) with $$("$(PYTHON)" -V) ..."
	@"$(PYTHON)" -m venv $(VENV)

# A stamp is named after the content of pyproject.toml, so a changed dependency installs again and a touched file does not.
$(RUNTIME): | $(BIN)/python
	@echo "Installing ricordo into $(VENV) (once; this can take a minute) ..."
	@$(PIP) --editable ".[embed]"
	@rm -f $(VENV)/.runtime-* && touch $@

# pip reads dependency groups from version 25.1 on.
$(DEV): | $(BIN)/python
	@echo "Installing ricordo and its development tools into $(VENV) (once; this can take a few minutes) ..."
	@$(PIP) "pip>=25.1"
	@$(PIP) --editable ".[embed]" --group dev --group docs
	@rm -f $(VENV)/.runtime-* $(VENV)/.dev-* && touch $(RUNTIME) $@

# Only the charts of the benchmark pages need it.
$(CHARTS): | $(DEV)
	@$(PIP) --group bench
	@rm -f $(VENV)/.charts-* && touch $@

demo: $(RUNTIME) ## see it work: no key, no server, no network
	@$(BIN)/ricordo demo

test: $(DEV) ## run every test
	$(PYTEST) $(ARGS)

check: format-check lint types contracts house site-check requirements ## everything a change must pass

format-check: $(DEV)
	$(BIN)/ruff format --check .

lint: $(DEV)
	$(BIN)/ruff check .

types: $(DEV)
	$(BIN)/mypy

contracts: $(DEV)
	$(BIN)/lint-imports --no-logo --no-cache

house: $(DEV) ## count rooms, files and names of the source
	$(BIN)/python scripts/measure_house.py

site-check: $(DEV)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site

requirements: $(DEV) ## run every test and report which requirements hold, to build/requirements.json too
	$(PYTEST) --requirements=$(REPORT) $(ARGS)

# DATA: files of LoCoMo or LongMemEval or folders of BEAM, from where you have them. OUT: where the pages go.
bench: $(CHARTS) ## measure quality (own set and DATA=files) and speed (SIZES=1000,10000), and write their pages
	$(BIN)/python benchmarks/quality.py $(DATA) $(if $(OUT),--out $(OUT))
	$(BIN)/python benchmarks/speed.py --sizes $(SIZES) $(if $(OUT),--out $(OUT))

bench-million: $(CHARTS) ## measure the speed of a million entries; minutes, and some GB
	$(BIN)/python benchmarks/speed.py --sizes 1000000 --out $(or $(OUT),build/bench-million)

bench-rest: $(DEV) ## run the other benchmarks that need no data from outside
	@set -e; for file in $(BENCHMARKS); do echo "== $$file"; $(BIN)/python "$$file"; done
	@set -e; for name in stores window; do echo "== benchmarks/$$name.py --quick"; $(BIN)/python benchmarks/$$name.py --quick; done

soak: $(DEV) ## run the tests that take minutes
	$(BIN)/python -m pytest -m "soak and not hosts and not adapters" --timeout=1800 $(ARGS) || { code=$$?; test $$code -eq 5 && echo "No test is marked soak yet."; }

# The versions that the tests passed with; name others to try them, below an empty build/.
MCP_PROGRAMS ?= @modelcontextprotocol/conformance@0.1.16 @modelcontextprotocol/inspector@2.12.0
HOST_PROGRAMS ?= @anthropic-ai/claude-code@2.1.330 @openai/codex@0.169.0 @google/gemini-cli@0.61.0 opencode-ai@1.18.33
HOSTS_INSTALLED := $(HOSTS)/.installed-$(firstword $(shell echo '$(HOST_PROGRAMS)' | cksum))

build/mcp-tools/node_modules:
	npm install --silent --no-fund --no-audit --prefix build/mcp-tools node@22 $(MCP_PROGRAMS)

test-mcp: $(DEV) build/mcp-tools/node_modules ## install MCP's conformance suite and inspector from npm, and run them
	RICORDO_HOSTS=required $(BIN)/python -m pytest -m hosts tests/mcp_room $(ARGS)

# The programs are no dependency: they are for these tests alone, and lie below build/. npm runs no script of a package but these.
$(HOSTS_INSTALLED):
	@command -v npm >/dev/null || { echo "The tests with real hosts need Node.js and npm."; exit 1; }
	@echo "Installing Claude Code, Codex, Gemini CLI and opencode into $(HOSTS) (once; a GB) ..."
	@npm install --prefix $(HOSTS) --no-audit --no-fund --no-save --ignore-scripts --loglevel=error $(HOST_PROGRAMS)
	@node $(HOSTS)/node_modules/@anthropic-ai/claude-code/install.cjs
	@node $(HOSTS)/node_modules/opencode-ai/postinstall.mjs
	@touch $@

test-hosts: $(DEV) $(HOSTS_INSTALLED) build/mcp-tools/node_modules ## run the tests with the real Claude Code, Codex, Gemini CLI, opencode and tools of MCP, offline
	RICORDO_HOSTS=required $(BIN)/python -m pytest -n auto -m "hosts and not soak" --timeout=400 tests/hosts tests/mcp_room $(ARGS)

test-hosts-full: $(DEV) $(HOSTS_INSTALLED) build/mcp-tools/node_modules ## the same, with those that take long
	RICORDO_HOSTS=required $(BIN)/python -m pytest -m hosts --timeout=900 tests/hosts tests/mcp_room $(ARGS)

# The frameworks are for these tests alone; the extras give the range of versions. A changed pyproject.toml installs again.
ADAPTERS_INSTALLED := $(ADAPTERS)/.installed-$(KEY)
FRAMEWORKS := openai-agents,langchain,langgraph,claude-agent-sdk

$(ADAPTERS_INSTALLED): | $(BIN)/python
	@echo "Installing the frameworks of agents into $(ADAPTERS) (once; this can take a few minutes) ..."
	@$(BIN)/python -m venv $(ADAPTERS)
	@$(ADAPTERS)/bin/python -m pip install -qq --disable-pip-version-check --editable ".[models,$(FRAMEWORKS)]" \
	  "langchain-openai>=1.4" "langmem>=0.0.30" \
	  "hypothesis>=6.112" "pytest>=8.3" "pytest-timeout>=2.3" "pytest-xdist>=3.6" "trio>=0.27"
	@rm -f $(ADAPTERS)/.installed-* && touch $@

test-adapters: $(ADAPTERS_INSTALLED) ## run the tests of the adapters with the real frameworks, offline
	RICORDO_ADAPTERS=required $(ADAPTERS)/bin/python -m pytest -n auto -m "adapters and not soak" --timeout=300 tests/adapters $(ARGS)

test-adapters-full: $(ADAPTERS_INSTALLED) ## the same, with those that take long
	RICORDO_ADAPTERS=required $(ADAPTERS)/bin/python -m pytest -n auto -m adapters --timeout=900 tests/adapters $(ARGS)

fuzz: $(DEV) ## run the property tests with fresh random examples, many of them
	$(PYTEST) -m hypothesis --hypothesis-profile=fuzz --timeout=1800 $(ARGS)

docs: $(DEV) ## serve the documentation on this machine
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

format: $(DEV) ## let ruff format and mend what it can, and render the generated reference pages
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python scripts/render_reference.py

clean: ## remove what the other targets made
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
