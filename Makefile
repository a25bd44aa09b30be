# `make run` and `make test` need nothing but Python >= 3.11; see scripts/setup.

# The checkout is installed editable, so only these make a new set-up necessary.
SOURCES := pyproject.toml CMakeLists.txt constraints.txt scripts/setup scripts/find-python \
           $(wildcard engine/abers/_core/*.cpp engine/abers/_core/*.hpp)
BIN := .venv/bin

.PHONY: run test test-long lint bench docs setup clean

run: .venv/run.stamp
	$(BIN)/abers replay Phishing --delay 50 --output predictions.jsonl

setup: .venv/dev.stamp

.venv/run.stamp: $(SOURCES)
	scripts/setup run

.venv/dev.stamp: $(SOURCES)
	scripts/setup dev

clean:
	rm -rf .venv build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
