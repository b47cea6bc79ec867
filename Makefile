# The only list of commands. `make test` and `make demo` set up what they need by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python compiles what is imported: of all that is installed, most never is.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# One thread for BLAS and OpenMP: the products here are small.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
GALLERY ?= 1
# Tests at a time. Some wait for processes of their own, so there is room for one more than processors.
JOBS ?= 3
PYTEST := $(BIN)/python -m pytest
# Marks of tests that start servers or many processes: each has a stage.
SERVERS := engines or browser or prometheus or brokers or stores

.PHONY: setup demo examples test test-all test-more test-slow test-engines test-browser test-prometheus test-brokers \
	test-stores test-workflows mutants fuzz sanitize lint bench bench-lakes data quality \
	privacy-bench reproduce docs wheels smoke-aarch64 release-check clean

setup: $(VENV)/dev.done

$(VENV)/venv.done:
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

NATIVE := hatch_build.py $(wildcard native/*)

$(VENV)/demo.done: $(VENV)/venv.done pyproject.toml constraints.txt $(NATIVE)
	@echo "Installing sketchshift with its plots (once) ..."
	$(PIP) -e '.[view]'
	@touch $@

$(VENV)/dev.done: $(VENV)/venv.done pyproject.toml papers/pyproject.toml constraints.txt $(NATIVE)
	@echo "Installing sketchshift with its development tools (once) ..."
	$(PIP) -e '.[dev]' -e ./papers
	@touch $@ $(VENV)/demo.done

demo: $(VENV)/demo.done  ## the main job on real data, with a picture
	$(BIN)/sketchshift demo

examples: setup  ## a few minutes: every script in examples/, each in a fresh folder
	@set -e; folder=$$(mktemp -d); for script in examples/*.py; do \
		name=$$(basename $$script .py); mkdir $$folder/$$name; echo "=== $$script"; \
		start=$$(date +%s); $(BIN)/python $$script $$folder/$$name; \
		echo "--- $$script: $$(($$(date +%s) - start)) s"; echo; \
	done; echo "The pictures are in $$folder."

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint  ## minutes: what a change can break
	$(PYTEST) -n $(JOBS) --dist worksteal

test-all: lint  ## what CI runs: also engines, servers, a browser, datasets and rates
	$(BIN)/python .ci/stages.py $(STAGES)

test-slow: setup  ## hours: memory of long reads, exhaustive checks, rates on all data
	$(PYTEST) --tier slow

# One stage of `make test-all` each.
test-more: setup  ## rates, datasets, and what takes seconds
	$(PYTEST) -n $(JOBS) --dist worksteal --tier all -m "not ($(SERVERS))"

test-engines: setup  ## by themselves: they fill the machine
	$(PYTEST) --tier all -m engines

test-browser: setup  ## report and explorer in a real Chromium, Debian's
	command -v chromium chromedriver || (apt-get update -q && apt-get install -y -q chromium chromium-driver)
	$(PYTEST) --tier all -m browser tests/view

test-prometheus: setup  ## the metrics of `follow --watch`, scraped by a real Prometheus, Debian's
	command -v prometheus || (apt-get update -q && apt-get install -y -q prometheus && \
		(! command -v systemctl || systemctl disable --now prometheus || true))  # Debian starts a service
	$(PYTEST) --tier all -m prometheus tests/cli

test-brokers: setup  ## streams of a real Redis, Debian's, and of librdkafka's Kafka
	command -v redis-server || (apt-get update -q && apt-get install -y -q redis-server && \
		(! command -v systemctl || systemctl disable --now redis-server || true))
	$(PYTEST) --tier all -m brokers tests/live

test-stores: setup  ## files in stores, against servers of S3 and Google: in environments of their own, whose pins differ
	test -x .venv-moto/bin/moto_server || ($(PYTHON) -m venv .venv-moto && .venv-moto/bin/pip install -q 'moto[server]==5.2.5')
	test -x .venv-gcs/bin/gcp-storage-emulator || ($(PYTHON) -m venv .venv-gcs && .venv-gcs/bin/pip install -q gcp-storage-emulator==2026.7.19)
	$(PYTEST) --tier all -m stores tests/live

# Airflow wants versions of its own of much else.
$(VENV)-workflow/done: pyproject.toml
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -e . pytest apache-airflow==3.1.3
	@touch $@

test-workflows: $(VENV)-workflow/done  ## Airflow runs examples/workflows
	$(VENV)-workflow/bin/python -m pytest tests/examples/test_workflows.py --tier workflows

# Line coverage by test first: a mutant meets the tests that run its line.
MUTANTS := $(CURDIR)/build/mutants
$(VENV)-mutants/done:
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check cosmic-ray==8.7.0 coverage==7.17.3
	@touch $@

mutants: setup $(VENV)-mutants/done  ## an hour: which of 120 small faults the tests find. SEED=1 draws others
	rm -rf $(MUTANTS) && mkdir -p $(MUTANTS)
	COVERAGE_FILE=$(MUTANTS)/coverage $(PYTEST) -n $(JOBS) --dist worksteal --tier all -m "not ($(SERVERS))" \
		--cov=sketchshift --cov-context=test --cov-report= --junitxml=$(MUTANTS)/tests.xml
	$(VENV)-mutants/bin/python .ci/mutants.py draw --coverage $(MUTANTS)/coverage --seed $(or $(SEED),0) > $(MUTANTS)/drawn.json
	$(VENV)-mutants/bin/python .ci/mutants.py run $(MUTANTS)/drawn.json --coverage $(MUTANTS)/coverage \
		--durations $(MUTANTS)/tests.xml --python $(CURDIR)/$(BIN)/python

fuzz: setup  ## minutes: random comparisons of the kernels with the reference. FUZZ="--seed 1"
	$(BIN)/python tests/kernels/fuzz.py $(or $(FUZZ),--comparisons 10000)

SANITIZED := build/sanitize
SANITIZERS := -fsanitize=address,undefined,float-cast-overflow -fno-sanitize=vptr -fno-sanitize-recover=all
sanitize: setup  ## minutes: the kernels under the sanitizers of GCC, in a copy of the package
	mkdir -p $(SANITIZED) && cp -r src $(SANITIZED)
	CXX="g++ $(SANITIZERS)" CXXFLAGS=-O1 $(BIN)/python native/build.py \
		$(SANITIZED)/src/sketchshift/kernels/cpu/kernels.native.so
	export LD_PRELOAD=$$(g++ -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc \
		PYTHONPATH=$(SANITIZED)/src; $(BIN)/python tests/kernels/fuzz.py $(or $(FUZZ),--comparisons 1000) \
		&& $(BIN)/python -m pytest tests/kernels

bench: setup  ## ratios against baselines of the same run
	$(BIN)/python benchmarks/bench_sketch.py
	$(BIN)/python benchmarks/bench_decode.py
	$(BIN)/python benchmarks/bench_engines.py
	$(BIN)/python benchmarks/bench_start.py
	$(BIN)/python benchmarks/bench_slices.py
	$(BIN)/python benchmarks/bench_compare.py

bench-lakes: setup  ## minutes: cubes, stores and databases; the figures of the pages are of larger data
	$(BIN)/python benchmarks/bench_cube.py
	$(BIN)/python benchmarks/bench_stores.py
	$(BIN)/python benchmarks/bench_databases.py

data: setup  ## minutes: the public datasets, 80 MB, to a cache folder or to SKETCHSHIFT_DATA; DATA="--list"
	$(BIN)/python -m sketchshift_papers.data $(DATA)

# Rivals of the quality tables: no part of the project, and their own versions of nothing else.
$(VENV)-rivals/done: $(VENV)/dev.done
	-$(BIN)/python -m pip install --quiet --no-deps --target $(@D) bico==0.1.5 faiss-cpu==1.15.1 river==0.26.1
	@mkdir -p $(@D) && touch $@

quality: setup $(VENV)-rivals/done  ## half an hour on 16 cores; goes on where it stopped. QUALITY="--workers 16"
	PYTHONPATH=benchmarks:$(VENV)-rivals $(BIN)/python -m quality $(QUALITY)

$(VENV)-diffprivlib/done:  # it clashes with current scikit-learn
	$(PYTHON) -m venv --clear $(@D)
	-$(@D)/bin/python -m pip install --quiet diffprivlib==0.6.6 scikit-learn==1.5.2
	@touch $@

privacy-bench: setup $(VENV)-diffprivlib/done  ## an hour: private clustering against two others
	PYTHONPATH=benchmarks $(BIN)/python -m privacy --diffprivlib $(VENV)-diffprivlib/bin/python $(PRIVACY)

reproduce: setup  ## every figure of the paper, small: a table of verdicts. REPRODUCE="fig1 --full"
	$(BIN)/python -m sketchshift_papers $(or $(REPRODUCE),--all --quick)

docs: setup  ## runs the examples that changed; GALLERY=0 runs none
	$(BIN)/python -m sphinx -W --keep-going -D plot_gallery=$(GALLERY) -b html docs docs/_build/html

# The names of zig; a tag of wheels follows from each (native/build.py). Windows takes minutes, once.
LINUX := x86_64-linux-gnu.2.17 aarch64-linux-gnu.2.17
OTHERS := x86_64-macos.10.13 aarch64-macos.11.0 x86_64-windows-gnu
TARGETS ?= $(LINUX)

$(VENV)-release/done:
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check build hatchling twine ziglang
	@touch $@

wheels: $(VENV)-release/done  ## sdist and wheels into dist/; TARGETS="$(LINUX) $(OTHERS)" builds all
	rm -rf dist
	$(VENV)-release/bin/python -m build --no-isolation --sdist
	set -e; for target in $(TARGETS); do \
		SKETCHSHIFT_TARGET=$$target $(VENV)-release/bin/python -m build --no-isolation --wheel; done

release-check: wheels  ## whether dist/ may be released; TAG=v0.1.0 for that tag
	$(VENV)-release/bin/python .ci/release_check.py $(addprefix --tag ,$(TAG))

# An aarch64 Python of this Debian, unpacked and not installed: qemu runs it with no help of the kernel.
ARM := $(VENV)-aarch64
ARM_PACKAGES := python3,libpython3-stdlib,libstdc++6,libgomp1
$(ARM)/done:
	(command -v qemu-aarch64-static && command -v mmdebstrap) || (apt-get update -q && apt-get install -y -q qemu-user-static mmdebstrap)
	rm -rf $(ARM) && mkdir $(ARM)
	. /etc/os-release; mmdebstrap --quiet --arch=arm64 --variant=extract --include=$(ARM_PACKAGES) \
		$$VERSION_CODENAME $(ARM)/debian
	@touch $@

smoke-aarch64: $(ARM)/done  ## the aarch64 wheel of dist/ under emulation; needs Debian and root
	rm -rf $(ARM)/site
	version=$$(basename $$(readlink $(ARM)/debian/usr/bin/python3)); \
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --target $(ARM)/site -c constraints.txt \
		--only-binary=:all: --implementation cp --python-version $${version#python} \
		$(foreach tag,2014 _2_17 _2_27 _2_28,--platform manylinux$(tag)_aarch64) dist/*manylinux*aarch64*
	qemu-aarch64-static -L $(ARM)/debian -E PYTHONHOME=$(CURDIR)/$(ARM)/debian/usr -E PYTHONPATH=$(CURDIR)/$(ARM)/site \
		$(ARM)/debian/usr/bin/python3 -m sketchshift.smoke

clean:
	rm -rf $(VENV) $(VENV)-mutants $(VENV)-workflow $(VENV)-diffprivlib $(VENV)-rivals $(VENV)-release $(ARM) dist docs/_build docs/gallery .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src papers tests -name __pycache__ -type d -exec rm -rf {} +
