# Each target does its own set-up; `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# without bytecode each of the tests' many processes would compile all modules again
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PACKAGER := $(VENV)/.packager
PYTHON ?=
PYTEST := $(BIN)/python -m pytest
# two files in parallel, for CI's two cores; those that measure the whole computer or time are left to the end
BESIDE := -m "not long and not built and not alone"
ALONE := -m "alone and not long"
# a crashed process ends the run: xdist would start another one, and with --no-loadscope-reorder wait for it without end
SPLIT := --dist loadfile --max-worker-restart 0
TWO := -n 2 $(SPLIT)
# more where most of the time is waiting, for peers, rounds and deadlines: not in scripts, which import and compute, nor end
# to end, where each test starts five processes that import torch
THREE := -n 3 $(SPLIT)
FOUR := -n 4 $(SPLIT)
# in the given order: xdist would start with the files with the most tests, and end with a single long one
IN_ORDER := --no-loadscope-reorder
# the files of folders, except the long ones, those first that take longest; xdist gives a file to the worker of one with
# a single test before that has ended
files = $(shell grep -rL --include='test_*.py' '^pytestmark = pytest.mark.long' $(1) | sort)
longest_first = $(filter $(files),$(LONGEST)) $(filter-out $(LONGEST),$(files))
# the files with tests of a mark, of which others need not be collected
marked = $(shell grep -rl --include='test_*.py' 'pytest.mark.$(1)' tests | sort)
LONGEST := $(addprefix tests/,$(addsuffix .py, \
  end_to_end/test_practice_and_join $(addprefix swarm/test_,worker_stops swarm_optimizer run_ends missed_rounds) \
  $(addprefix end_to_end/test_,asleep faults failing_joins) $(addprefix swarm/test_,state_transfer bad_numbers) \
  end_to_end/test_against_stock $(addprefix swarm/test_,honest_rounds short_epochs stock_peer) \
  $(addprefix end_to_end/test_,cli_demo lost_donor hostile) $(addprefix training/test_,lightning lightning_devices page plain_loop) \
  swarm/test_worker_of_ranks swarm/test_ranks_in_lockstep end_to_end/test_lockstep worker/ranks/test_group worker/ranks/test_hooks \
  host/test_checkpoints engine/test_engine adapters/process/test_worker services/test_bootstrap cli/test_doctor \
  recipes/test_registry test_where_would_i_add worker/training/test_oom_retry worker/training/test_loop worker/test_generated_cases \
  $(addprefix gui/,app/test_practice_by_mouse test_screen_reader app/test_small_screens test_pictures)))
# the pages' own strings; those of the core are in client/skep/language/locale
GERMAN := gui/skep_gui/translations/skep_de
# the core needs full coverage, branches included
CORE := $(TWO) tests/core --cov=skep.core --cov-branch --cov-report=term-missing:skip-covered

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

.PHONY: setup
setup: $(READY) ## virtual environment with the pinned packages

# On Linux pip installs PyTorch's CUDA build from its default index, or a CPU build of the same version if pip's
# configuration offers one (an extra index or a folder of wheels). Sizes of large files are printed before their download.
$(READY): pyproject.toml constraints.txt packaging/find-python.sh $(wildcard client/skep/language/locale/*/*.po)
	python=$$(packaging/find-python.sh "$(PYTHON)"); test -x $(BIN)/python || "$$python" -m venv $(VENV)
	$(BIN)/python packaging/install.py -c constraints.txt -e '.[train,gui,dev]'
	$(BIN)/python assets/catalogues.py
	touch $(READY)

.PHONY: app
app: $(READY) ## skep in the tray and a window
	$(BIN)/skep-gui

.PHONY: demo
demo: $(READY) ## a practice swarm on this computer, joined, trained with, reported
	$(BIN)/skep demo

# Each suite runs in a separate process, and so does each test file with peers: hivemind renames a log level of the whole
# process, and has process-wide locks that a peer killed while it holds one never releases.
.PHONY: test
test: $(READY) system-packages ## every check and the default test suites (about 35 minutes on 2 cores)
	$(MAKE) --no-print-directory --jobs=2 --output-sync check test-core
	$(PYTEST) $(FOUR) $(IN_ORDER) $(BESIDE) $(call longest_first,$(addprefix tests/,language engine services adapters cli))
	OMP_NUM_THREADS=1 $(PYTEST) $(FOUR) $(IN_ORDER) $(BESIDE) $(call longest_first,$(addprefix tests/,worker recipes host test_where_would_i_add.py))
	QT_QPA_PLATFORM=offscreen $(PYTEST) $(THREE) $(IN_ORDER) $(BESIDE) $(call longest_first,tests/gui)
	$(BIN)/python tests/each_file.py 4 $(BESIDE) -- $(call longest_first,tests/swarm)
	$(BIN)/python tests/each_file.py 2 $(BESIDE) -- $(call longest_first,tests/training)
	$(PYTEST) $(TWO) $(IN_ORDER) $(BESIDE) $(call longest_first,tests/end_to_end tests/packaged)
	$(PYTEST) $(TWO) $(ALONE) $(call marked,alone)

.PHONY: system-packages
system-packages: ## what the tests need of the system: installed as root, else named
	packaging/system-packages.sh

.PHONY: test-long
test-long: $(READY) system-packages ## the cases that the default suites leave out for their length
	$(BIN)/python tests/each_file.py 1 -m long -- tests/swarm/test_*.py tests/training/test_*.py
	$(PYTEST) -m long tests/worker
	$(PYTEST) -m long tests/end_to_end

.PHONY: test-core
test-core: $(READY) ## the pure tests alone, with their coverage: seconds
	$(PYTEST) $(CORE)

.PHONY: test-gpu
test-gpu: $(READY) ## tests that need a CUDA device, each file in a process of its own: ranks are forked before a card is used
	status=0; for each in tests/gpu/test_*.py; do $(PYTEST) $$each -m gpu || status=1; done; exit $$status

.PHONY: check
check: $(READY) ## lint, format, types, architecture, catalogues, documents
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) tests/language/test_catalogues.py tests/core/test_documents.py

# The tools that build packages are installed in addition, so that `make setup` does not need them.
$(PACKAGER): $(READY) packaging/build-packages.sh
	packaging/build-packages.sh $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train,gui,dev,package]'
	touch $(PACKAGER)

.PHONY: package
package: $(PACKAGER) ## skep frozen, whole and the app alone; the .deb and the portable archive of each; into dist/
	$(BIN)/python packaging/build.py
	$(BIN)/python packaging/deb.py
	$(BIN)/python packaging/portable.py

.PHONY: app-package
app-package: $(PACKAGER) ## only the app alone, without the training stack
	$(BIN)/python packaging/build.py --app-only
	$(BIN)/python packaging/deb.py app
	$(BIN)/python packaging/portable.py app

.PHONY: package-test
package-test: $(PACKAGER) system-packages ## test what `make package` built, with the processor's compute pack, also in a bare Debian 12
	$(MAKE) packs PACK=cpu
	$(PYTEST) -m built tests/packaged

# PACK="cpu cuda-13": these only; LOCK=1 chooses their wheels anew
.PHONY: packs
packs: $(PACKAGER) ## the compute packs that are locked, by their lock files in packaging/packs, into dist/packs (PACK=… LOCK=1)
	$(BIN)/python packaging/packs.py $(if $(LOCK),--lock) $(PACK)

# ARCHIVE, PACKS, KEYS and TO as in packaging/release_repo.py; without ARCHIVE and PACKS the published files are signed again.
.PHONY: release-repo
release-repo: $(PACKAGER) ## publish an archive, packs in a repository of updates (KEYS=… TO=… ARCHIVE=… NOTES=… PACKS=…)
	$(BIN)/python packaging/release_repo.py --keys "$(KEYS)" --to "$(TO)" \
	  $(if $(ARCHIVE)$(PACKS),$(if $(ARCHIVE),"$(ARCHIVE)" $(if $(NOTES),--notes "$(NOTES)")) $(if $(PACKS),--packs "$(PACKS)"),--renew)

# a repository on this computer with throw-away keys, an app that is built for it, and what both are measured by; the address
# is that of benchmarks/faults/pack_server.py
SHOWN := build/packs-shown
SHOWN_REPOSITORY := KEYS=$(SHOWN)/keys TO=$(SHOWN)/repository
.PHONY: bench-packs
bench-packs: $(PACKAGER) system-packages ## as root: the app fetches its pack in bare Debians, and interrupted, into benchmarks/faults.md (two hours)
	export SKEP_RELEASE_PASSPHRASE=throw-away; \
	  $(MAKE) release-repo $(SHOWN_REPOSITORY); \
	  SKEP_UPDATES=http://127.0.0.1:28917 SKEP_UPDATES_ROOT=$(SHOWN)/repository/metadata/1.root.json $(MAKE) app-package; \
	  $(MAKE) packs PACK=cpu; \
	  $(MAKE) release-repo $(SHOWN_REPOSITORY) PACKS=dist/packs
	status=0; for part in debians packs; do $(BIN)/python benchmarks/faults $$part || status=1; done; exit $$status

.PHONY: icons
icons: $(READY) ## draw the mark's icons into assets/icons
	$(BIN)/python assets/draw_icons.py

.PHONY: translations
translations: $(READY) ## collect what the pages say, and name what has no German yet
	$(BIN)/pyside6-lupdate -silent -locations none -no-obsolete -extensions py gui/skep_gui -ts $(GERMAN).ts
	$(BIN)/pyside6-lrelease -silent $(GERMAN).ts -qm $(GERMAN).qm
	! grep -B1 'type="unfinished"' $(GERMAN).ts
	$(BIN)/python assets/catalogues.py missing

.PHONY: docs
docs: $(READY) ## write the tables of docs/manifest.md from the manifest's declaration
	$(BIN)/python assets/manifest_reference.py

.PHONY: recording
recording: $(READY) system-packages ## record a practice run for the pictures, into assets/recording (a quarter of an hour)
	$(BIN)/python assets/record_practice.py

.PHONY: screenshots
screenshots: $(READY) ## take the documents' pictures from the recorded practice run: light, dark, at 200 %, German
	$(BIN)/python assets/screenshots.py
	QT_SCALE_FACTOR=2 $(BIN)/python assets/screenshots.py

.PHONY: bench-gui
bench-gui: $(READY) system-packages ## measure the app's start, memory, processor use and drawing, into benchmarks/gui.json and gui.md
	$(BIN)/python benchmarks/gui.py

.PHONY: bench-gpu
bench-gpu: $(READY) ## measure memory, steps, shares and give-back on a CUDA device, into benchmarks/gpu-*.md (15 minutes)
	$(BIN)/python benchmarks/gpu.py

# PYTHON is that of the computer with the GPU
.PHONY: gpu-kit
gpu-kit: $(READY) ## gather in dist/gpu-kit what a computer with a GPU and PyTorch lacks for the GPU suite (PYTHON=3.12)
	$(BIN)/python packaging/gpu_kit.py $(if $(PYTHON),--python "$(PYTHON)")

.PHONY: bench-giveback
bench-giveback: $(READY) system-packages ## measure how the computer is given back, into benchmarks/ (25 minutes)
	status=0; for each in giveback sensors foreground swarm_books; do \
	  $(BIN)/python benchmarks/$$each.py || status=1; done; exit $$status

.PHONY: bench
bench: $(READY) ## measure what the README states, into benchmarks/ (five hours; the rows of a slow link need root)
	status=0; for each in run.py against_stock; do \
	  $(BIN)/python benchmarks/$$each || status=1; done; exit $$status

.PHONY: bench-protection
bench-protection: $(READY) ## measure what the sandbox and the guards cost, into benchmarks/protection.md (an hour)
	$(BIN)/python benchmarks/protection.py

.PHONY: bench-devices
bench-devices: $(READY) ## measure several ranks of one worker on the processor, into benchmarks/devices.md (8 minutes)
	$(BIN)/python benchmarks/devices.py

# OLD=…: a checkout of the commit to compare with, in which `make setup` was run
.PHONY: bench-pairs
bench-pairs: $(READY) system-packages ## compare this checkout with another in turn, into benchmarks/pairs.md (6 minutes a pair)
	$(BIN)/python benchmarks/pairs.py "$(OLD)"

# PART=kill, stop, stall, soak, churn, start, donor or (as root) link, disk; COUNT=20: that many rows of this commit. It ends
# with an error until all of them are there. An interrupted soak is not continued: the next start runs other processes
.PHONY: test-faults
test-faults: $(READY) ## kill, stop and freeze running peers, into benchmarks/faults.md (PART=… COUNT=…; under an hour, goes on at the next start)
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/faults $(PART) $(if $(COUNT),--count $(COUNT))

# its rows are more of PART=kill on this commit, each with another random moment; 500 take about six hours
.PHONY: test-nightly
test-nightly: $(READY) ## as test-faults PART=kill, 500 times more (a night)
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/faults kill --more 500 --minutes 600

# COUNT=10: that many attacks of each part on this commit. It ends with an error until all of them are there
.PHONY: test-hostile
test-hostile: $(READY) system-packages ## what must be refused; attacks on a running swarm, in lockstep, and on stock peers (COUNT=…; three hours, an hour of each part at most; goes on at the next start)
	status=0; $(BIN)/python benchmarks/faults refused || status=1; \
	  for part in hostile lockstep stock; do \
	    OMP_NUM_THREADS=1 $(BIN)/python benchmarks/faults $$part $(if $(COUNT),--count $(COUNT)) || status=1; \
	  done; exit $$status

# ROWS="debian-12 python-3.14" runs only these, ROWS=--again runs all again
.PHONY: newcomer-test
newcomer-test: $(READY) ## the first command in bare Debians, three suites on every Python, into benchmarks/newcomer.md (an hour)
	packaging/install-packages.sh "Bare Debians need a program that is not installed." debootstrap
	$(BIN)/python benchmarks/newcomer.py $(ROWS)

.PHONY: lock
lock: $(READY) ## compile constraints.txt anew
	$(BIN)/python -m pip install --quiet 'pip-tools>=7.5'
	$(BIN)/python -m piptools compile --quiet --allow-unsafe --strip-extras --no-annotate --no-header --no-emit-index-url \
	  --no-emit-find-links --extra train --extra gui --extra package --extra dev --output-file - pyproject.toml \
	  | packaging/tidy-constraints.sh > constraints.new
	mv constraints.new constraints.txt

.PHONY: clean
clean: ## remove what was built, the virtual environment too
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage
