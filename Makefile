# The two commands: `make grade` (install, build, grade the sample class) and `make test`. `make help` lists the rest.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP_ARGS ?=
WORKERS ?= 3

ASSIGNMENT ?= 02-sinusoidal-encoding
SAMPLE := build/sample-class/$(ASSIGNMENT)
SUBMISSIONS ?= $(SAMPLE)
RESULTS ?= build/$(ASSIGNMENT).json
LANGUAGE ?=

# What is imported is compiled at its first import and kept; compiling every package while installing takes a minute more.
unexport PYTHONDONTWRITEBYTECODE

INSTALLED := $(VENV)/.installed
LESSONS := $(wildcard course/*.py course/figures/*.py course/lessons/*.md course/lessons/zh/*.md) nbgrader_config.py

# Submissions run in bubblewrap's sandbox. Where it is missing, root on Debian or Ubuntu gets it now; others are told how.
# The sample class is part of this repository, so where no sandbox can be had it is graded without.
HAS_SANDBOX = $(BIN)/python -c 'from autograder.kernels.sandbox import require; require()'
ifeq ($(SUBMISSIONS),$(SAMPLE))
GRADE_ARGS ?= $$($(HAS_SANDBOX) 2>/dev/null || echo --no-sandbox)
endif

.PHONY: grade test check bench lab release sandbox browser help clean
.DEFAULT_GOAL := help

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), f"Python 3.11 or newer is needed, this is {sys.version}"'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile $(PIP_ARGS) --constraint constraints.txt --editable ".[dev]"
	$(BIN)/python -c "from autograder.kernels.zygote import load; load()"
	touch $@

build/.released: $(INSTALLED) $(LESSONS)
	$(BIN)/python -m course build
	mkdir -p build && touch $@

build/sample-class/%: tests/sample_class/*.py build/.released
	rm -rf $@
	$(BIN)/python -m tests.sample_class $* $@

sandbox:
	@command -v bwrap >/dev/null || [ "$$(uname)" != Linux ] || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	    && { apt-get update -qq && apt-get install -y -qq --no-install-recommends bubblewrap; } >/dev/null; } \
	    || echo "bubblewrap is missing; install it for the sandbox: sudo apt install bubblewrap (or dnf, pacman, zypper)"

grade: build/.released sandbox $(filter $(SAMPLE),$(SUBMISSIONS)) ## grade: the sample class, or ASSIGNMENT=… SUBMISSIONS=… for a real one
	$(BIN)/autograder grade $(ASSIGNMENT) --submissions "$(SUBMISSIONS)" --json "$(RESULTS)" $(addprefix --language ,$(filter en zh,$(LANGUAGE))) $(GRADE_ARGS)

# The tests open the pages in a browser. Where it is missing, root on Debian gets it now; elsewhere those tests are skipped.
browser:
	@command -v chromedriver >/dev/null || { [ "$$(id -u)" = 0 ] && grep -q '^ID=debian' /etc/os-release \
	    && { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver; } >/dev/null; } \
	    || echo "chromedriver is missing; the tests of the pages are skipped (Debian: sudo apt install chromium chromium-driver)"

test: $(INSTALLED) sandbox browser ## test: kernels and processes included; THOROUGH=1: also what repeats it for every lesson
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

check: $(INSTALLED) sandbox ## check: format, lint, types, notebooks up to date, the quick tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m course build --check
	$(BIN)/python -m pytest -n $(WORKERS) -q -m "not slow"

bench: $(INSTALLED) sandbox build/.released ## bench: seconds a submission, ours and stock nbgrader's, in one run
	$(BIN)/python -m tests.benchmarks.grading
	$(BIN)/python -m tests.benchmarks.scale

lab: $(INSTALLED) ## lab: JupyterLab on the student notebooks
	$(BIN)/jupyter lab --notebook-dir=release

release: $(INSTALLED) ## release: build source/ and release/ from the lessons
	$(BIN)/python -m course build

help: ## help: this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/.*## /  make /'

clean: ## clean: forget what grading wrote (gradebook, autograded, feedback, reports, exports, build)
	rm -rf build autograded feedback journal reports exports gradebook.db .course-key
