# Everything runs in a virtual environment in .venv; only Python 3.11 to 3.13, venv and make must be there.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || echo python3)
BIN := .venv/bin
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# One thread a process: the sandbox's fork server must not fork threads, and workers share the cores.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
# A configuration that does not load must stop nbgrader, which would else grade with its stock executor.
export TRAITLETS_APPLICATION_RAISE_CONFIG_FILE_ERROR := 1

.PHONY: demo test check lab format lint types bench prove attacks fresh clean

demo: .venv/installed ## build, release, hand in, grade, feedback: a small class in demo/
	@$(BIN)/python -m graders.demo

test: .venv/installed ## all tests
	$(BIN)/python -m pytest -n auto --dist worksteal

check: lint types fresh test ## what CI asks of a commit

bench: .venv/installed ## how fast grading is, beside stock nbgrader and nbclient; on an idle machine
	@$(BIN)/python -m bench

prove: .venv/installed ## what the checks catch and what the diagnosis names, into docs/proof.md; about 6 minutes
	@$(BIN)/python -m proof

attacks: .venv/installed ## every attack on stock nbgrader and on ours, into docs/security.md; about 20 minutes, needs bubblewrap
	@PYTHONPATH=tests $(BIN)/python -m attacks.table

lint: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: .venv/installed
	$(BIN)/mypy

fresh: .venv/installed ## committed source/ and release/ are what the lessons and exercises give, and docs/proof.md is of these
	$(BIN)/python -m graders.freshness
	$(BIN)/python -m proof --fresh

format: .venv/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lab: .venv/installed ## JupyterLab in this folder, with the formgrader
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root)

clean: ## what make made, but for the environment
	rm -rf demo .pytest_cache .mypy_cache .ruff_cache .hypothesis

# pip takes exact versions from constraints.txt; the students' and the grader's packages are installed in place.
.venv/installed: pyproject.toml course/pyproject.toml constraints.txt
	@test -x $(BIN)/python || { echo "making .venv with $(PYTHON) and installing (PyTorch takes a few minutes) …"; $(PYTHON) -m venv .venv; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable course --editable '.[dev]'
	@touch $@
