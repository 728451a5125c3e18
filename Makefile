# make lab    set up .venv, then open JupyterLab on the notebooks
# make test   set up .venv, then lint, type check and run every test and notebook
# make site   the lessons as pages without a kernel, in build/site
# make test-matrix  every panel with ipykernel 6 and 7 in JupyterLab 4, Notebook 7 and Voila
# make setup  the set-up alone;  make clean  removes all that these made

PYTHON ?= python3
PY := .venv/bin/python
STAMP := .venv/installed
REPORTS := build/reports
NBVAL := --nbval-current-env --nbval-cell-timeout=120
STRICT := --nbval --nbval-sanitize-with=tests/notebooks/sanitize.cfg
# Two at a time, each on one thread: two threads each would wait for one another.
BESIDE := OMP_NUM_THREADS=1
TWICE := -n 2 --dist loadfile
MATRIX := build/matrix
QUIETLY := $(BESIDE) PIPEMARE_EDU_PROFILE=ci PLOTLY_RENDERER=plotly_mimetype

export PIP_DISABLE_PIP_VERSION_CHECK := 1

define CHECK_PYTHON
import sys
version = "%d.%d" % sys.version_info[:2]
if version not in ("3.11", "3.12", "3.13"):
    sys.exit("pipemare_edu needs Python 3.11, 3.12 or 3.13, and this one is " + version
             + ". Name another: make setup PYTHON=python3.12")
endef
export CHECK_PYTHON

.PHONY: setup lab lint test test-matrix notebooks site clean

setup: $(STAMP)
	@echo ".venv is ready."

# The stamp comes last, so a set-up that failed half-way is tried again.
$(STAMP): pyproject.toml constraints.txt
	@"$(PYTHON)" -c "$$CHECK_PYTHON"
	"$(PYTHON)" -m venv .venv
	$(PY) -m pip install -c constraints.txt hatchling
	$(PY) -m pip install -c constraints.txt --no-build-isolation -e ".[test]"
	@touch $@

lab: $(STAMP)
	@$(PY) -m pipemare_edu lab

lint: $(STAMP)
	$(PY) -m ruff check .
	$(PY) -m mypy

test: lint
	@rm -rf $(REPORTS)
	$(BESIDE) $(PY) -m pytest $(TWICE) -m "not waits and not matrix" --junitxml=$(REPORTS)/tests.xml tests
	$(BESIDE) $(PY) -m pytest $(TWICE) -m waits --junitxml=$(REPORTS)/waits.xml tests
	$(QUIETLY) $(PY) -m pytest $(TWICE) -p tests.priced --nbval-lax $(NBVAL) \
	    --junitxml=$(REPORTS)/notebooks.xml notebooks/*.ipynb
	$(QUIETLY) PIPEMARE_EDU_STRICT=1 $(PY) -m pytest $(TWICE) $(STRICT) $(NBVAL) \
	    --junitxml=$(REPORTS)/solutions.xml notebooks/solutions/*.ipynb

# An environment for each ipykernel, with all three front ends in it.
test-matrix: $(STAMP) $(MATRIX)/ipykernel6/installed $(MATRIX)/ipykernel7/installed
	$(PY) -m pytest -m matrix --junitxml=$(REPORTS)/matrix.xml tests/matrix

$(MATRIX)/ipykernel%/installed: pyproject.toml constraints.txt
	"$(PYTHON)" -m venv $(@D)
	grep -v "^ipykernel==" constraints.txt > $(@D)/constraints.txt
	$(@D)/bin/python -m pip install -c $(@D)/constraints.txt hatchling
	$(@D)/bin/python -m pip install -c $(@D)/constraints.txt --no-build-isolation -e ".[voila]" \
	    "ipykernel==$*.*" "jupyterlab==4.*" "notebook==7.*"
	@touch $@

# Both versions of every lesson, executed, from its one source, with a picture beside each figure.
notebooks: $(STAMP)
	$(PY) -m pipemare_edu.lessons.build
	$(PY) -m pipemare_edu.lessons.previews

# Pages to open without a kernel or a network.
site: $(STAMP)
	$(PY) -m pipemare_edu.lessons.site build/site

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
