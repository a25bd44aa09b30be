# `make run` and `make test` need nothing installed but make: see scripts/setup.

BIN := .venv/bin
# The install is editable: only these make another set-up necessary.
PACKAGING := pyproject.toml CMakeLists.txt constraints.txt scripts/setup scripts/find-python \
             $(wildcard engine/abers/_core/*.cpp engine/abers/_core/*.hpp) \
             $(wildcard engine/abers/*/__init__.py connectors/abers_connectors/*/__init__.py)

# Tests start many processes: without bytecode each of them compiles the modules again.
export PYTHONDONTWRITEBYTECODE :=

# One process a core, each with a broker of its own if it needs one. Each takes tests that stand
# together, so that what a module shares is made once, and who has none left takes from another. One
# that dies, as by a test that hangs, is not begun again: the run has failed.
# Native tests wait a fifth of the time, as for a browser, and those of Kafka half of it: they get more.
CORES := $(shell getconf _NPROCESSORS_ONLN)
test-native: PROCESSES := $(shell expr $(CORES) + 1)
test-kafka: PROCESSES := $(shell expr $(CORES) \* 2)
STAGES := test-native test-kafka test-reference test-sanitized test-wheel test-oldest
$(STAGES): export PYTEST_ADDOPTS := \
    -n $(or $(PROCESSES),$(CORES)) --dist worksteal --max-worker-restart=0 $(PYTEST_ADDOPTS)
# Threads of BLAS wait for one another where other processes have the cores: 39 s of a test, and 3 with one.
$(STAGES): export OPENBLAS_NUM_THREADS := 1
$(STAGES): export OMP_NUM_THREADS := 1

.PHONY: run demo-kafka test test-long chaos soak lint format bench docs setup clean engines flink serving lock release-check \
        $(STAGES)

run: .venv/run.stamp
	$(BIN)/abers replay Phishing --delay 50 --output predictions.jsonl

test:
	scripts/stages lint docs test-native -- test-kafka test-wheel test-sanitized test-reference

setup: .venv/dev.stamp

.venv/run.stamp: $(PACKAGING)
	scripts/setup run

.venv/dev.stamp: $(PACKAGING)
	scripts/setup dev

lint: setup
	scripts/lint

format: setup
	$(BIN)/ruff format
	find engine benchmarks tests -name "*.[ch]pp" -exec $(BIN)/clang-format -i {} +

docs: setup
	scripts/docs

test-native: setup
	$(BIN)/pytest -m "not kafka"

test-kafka: setup
	$(BIN)/pytest -m kafka tests/connectors

demo-kafka: .venv/run.stamp
	$(BIN)/python examples/kafka_demo/run.py $(if $(BROKERS),--brokers $(BROKERS))

test-reference: setup
	ABERS_BACKEND=reference $(BIN)/pytest --hypothesis-profile=again -m "not once and not simulation" \
	    tests/engine/calibration tests/engine/regression tests/engine/test_backends.py \
	    tests/engine/test_checks.py tests/engine/test_stateful.py tests/conformance

test-sanitized: setup
	scripts/test-sanitized

test-wheel: setup
	scripts/test-wheel

test-long: setup test-oldest engines flink serving
	$(BIN)/pytest --hypothesis-profile=long -o faulthandler_timeout=3600 -m "long or not long"

# Dask, Ray and Spark, which only the long tests and `python -m benchmarks.scale` need.
engines: setup
	$(BIN)/python -m pip install --quiet --group engines --constraint constraints.txt

# Flink, which only the long tests need, in an environment of its own: it needs Python 3.12.
flink: setup
	scripts/flink

# MLflow and BentoML, which only the long tests need, in an environment of their own.
serving: setup
	$(BIN)/python -m venv --clear build/serving
	build/serving/bin/pip install --quiet --disable-pip-version-check --requirement locks/serving.txt
	CI=true $(BIN)/pip wheel --quiet --no-build-isolation --no-deps --wheel-dir build/serving/dist .
	build/serving/bin/pip install --quiet --disable-pip-version-check --no-deps build/serving/dist/*.whl

test-oldest: setup
	scripts/test-oldest

# Every fault, also of three brokers, on each client, and those of `abers serve`; docs/evidence/faults.md gets
# the table of the results on brokers.
chaos: setup
	rm -f build/chaos.jsonl && mkdir -p build
	ABERS_CHAOS_RESULTS=$(CURDIR)/build/chaos.jsonl $(BIN)/pytest -s -o faulthandler_timeout=3600 \
	    -m "kafka and long" tests/connectors/kafka/test_failover.py tests/connectors/kafka/test_chaos_long.py
	$(BIN)/python -m tests.connectors.kafka.chaos.results build/chaos.jsonl
	$(BIN)/pytest -s -o faulthandler_timeout=3600 -m long tests/connectors/serve/test_chaos.py

# An hour of faults with quiet between them; SOAK=short takes minutes. docs/evidence/faults.md gets the
# table of the hour.
soak: setup
	rm -rf build/soak && mkdir -p build/soak
	$(BIN)/python -m tests.connectors.kafka.soak $(or $(SOAK),long) build/soak

# The hashes of all dependencies; after a change of constraints.txt or pyproject.toml.
lock: setup
	scripts/lock

# Everything of a release but the upload; see docs/releasing.md.
release-check:
	scripts/release-check

bench: setup
	$(BIN)/pip install -q -r benchmarks/rivals.txt
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv build dist site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
