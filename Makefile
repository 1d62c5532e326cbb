# Every target first installs what is missing (scripts/setup.sh), and says so.
.DEFAULT_GOAL := help
.PHONY: help demo picture heatmap drawings book dist dist-musl deb test test-core test-crates test-full test-python package pytest bench bench-limit bench-limit-cost bench-lab bench-lab-peers bench-judge bench-virtual bench-python bench-switch lint fuzz setup setup-sim setup-test setup-python setup-musl setup-dist setup-deb setup-book setup-bench setup-limit setup-virtual setup-fuzz

export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)

help:
	@echo "make demo       build, compare five systems with the plain network (scenarios/five.toml), report"
	@echo "make dist       build the program as it is shipped: optimised by a profile, stripped, target/dist/millpond"
	@echo "make dist-musl  the simulator as one static file for any Linux, target/dist/millpond-musl"
	@echo "make deb        a package for Debian and its relatives, target/deb, of make dist"
	@echo "make picture    the picture of README, docs/img/five.svg, after make demo"
	@echo "make heatmap    docs/img/combinations.svg: every subset of the five systems (930 runs, 15 minutes of two cores)"
	@echo "make drawings   docs/img: a packet's walk, the crates, an incast in time (scripts/drawings.py)"
	@echo "make book       the book as HTML, out/book (docs/ with mdBook); no link in it is dead"
	@echo "make test-core  tests of the simulator: no root, no namespaces, no clang (minutes)"
	@echo "make test-python  tests of the Python package (a virtual environment in target/python)"
	@echo "make test       all tests"
	@echo "make test-full  and those that take minutes"
	@echo "make setup-virtual  the kernel of world virtual: Linux for User Mode, some minutes, once"
	@echo "make lint       formatting, style of sentences, budget of lines, clippy, licences of dependencies"
	@echo "make bench      speed against ns-3 and htsim, threads, memory, growth, instructions (tens of minutes)"
	@echo "make bench-limit     bandwidth limits with this machine's kernel (root; tens of minutes)"
	@echo "make bench-limit-cost  nanoseconds a packet of its eBPF program (root; a minute)"
	@echo "make fuzz       a minute for each parser of outside bytes (libFuzzer)"
	@echo "make bench-lab       the lab beside the simulator, its rate and lateness, TLT, Canary and Presto there (root; minutes)"
	@echo "make bench-lab-peers the lab beside a bridge with tc tbf, and with HTB as Mininet has it (root; minutes)"
	@echo "make bench-judge     the simulator beside kernels in virtual time, twelve scenes (half an hour)"
	@echo "make bench-virtual   kernels in virtual time: boot, memory, cost of a frame, cores, limits (minutes)"
	@echo "make bench-python    the Python package: import, a run beside the command, ten million flows (minutes)"
	@echo "make bench-switch    the virtual switch with this machine's kernel: against its bridge, ports of shared memory (root; minutes)"

setup:
	@scripts/setup.sh

# What builds without the Linux part need.
setup-sim:
	@scripts/setup.sh --sim

setup-test:
	@scripts/setup.sh --test

setup-python:
	@scripts/setup.sh --python

setup-musl:
	@scripts/setup.sh --musl

setup-dist:
	@scripts/setup.sh --dist

# A program that is built already needs no llvm-profdata.
setup-deb:
	@scripts/setup.sh --deb $(if $(BINARY),,--dist)

setup-book:
	@scripts/setup.sh --book

setup-bench:
	@scripts/setup.sh --bench

setup-limit:
	@scripts/setup.sh --limit

# The kernel of the world `virtual`.
setup-virtual:
	@scripts/setup.sh --virtual

setup-fuzz:
	@scripts/setup.sh --fuzz

# Link-time optimisation takes most of a build and gains a sixth of the speed: the demo is sooner done without.
# Results are the same to the byte. The Linux part is left out: it would need clang and libelf.
demo heatmap drawings: export CARGO_PROFILE_RELEASE_LTO = off
demo heatmap drawings: export CARGO_PROFILE_RELEASE_CODEGEN_UNITS = 16
demo heatmap drawings: export CARGO_PROFILE_RELEASE_DEBUG = false
demo: setup-sim
	cargo build --release --locked -p millpond-cli --no-default-features
	./target/release/millpond compare scenarios/five.toml --seeds 6 --out out/demo --force
	@echo "report: out/demo/report.html"

# README's picture: of a comparison that is finished only other numbers are shown.
picture: demo
	./target/release/millpond compare scenarios/five.toml --seeds 6 --out out/demo --quiet \
		--shows backup.fct.mean,queries.qct.p95,calls.latency.p95,reads.fct.p95
	python3 scripts/forests.py out/demo/compare.json docs/img/five.svg

# The picture of docs/reproduce-combinations.md. Runs that are finished are kept.
heatmap: setup-sim
	cargo build --release --locked -p millpond-cli --no-default-features
	./target/release/millpond reproduce combinations
	python3 scripts/heatmap.py out/reproduce-combinations docs/img/combinations.svg

# The book's drawings: of places, of crates' dependencies, and of two runs. `make lint` compares
# the first two with their sources. MILLPOND=FILE runs a program that is built already.
drawings: setup-sim
	[ -n "$(MILLPOND)" ] || cargo build --release --locked -p millpond-cli --no-default-features
	python3 scripts/drawings.py

book: setup-book
	scripts/book.sh

# Two builds, and two minutes of runs between them that make the profile. ARGS="--plain" builds without a profile.
dist: setup-dist
	scripts/dist.sh $(ARGS)

# One static file. ARGS="--profile release" builds by that profile of Cargo.toml.
dist-musl: setup-musl
	scripts/musl.sh $(ARGS)

# BINARY=FILE packs a program that is built already.
deb: setup-deb
	@[ -n "$(BINARY)" ] || scripts/dist.sh
	packaging/deb/build.sh $(BINARY)

# Crates that need neither root nor namespaces; the command's own tests are in `make test`.
CORE := -p millpond $(patsubst %,-p millpond-%,core ranks scenario sim results claims import doorbell)
test-core: export PROPTEST_RNG_SEED ?= $(shell printf %d 0x$$(git rev-parse --short=15 HEAD^{tree} 2>/dev/null || echo 1))
test-core: setup-sim
	cargo test --locked $(CORE) --lib --examples
	cargo test --locked $(CORE) --doc

test: test-crates
	@$(MAKE) --no-print-directory test-python

# Tests build with [profile.test] of Cargo.toml: optimised, and with the checks of a debug build.
# Property tests draw their cases by the number of the tree: a commit has one outcome, the next commit other cases.
test-crates: export PROPTEST_RNG_SEED ?= $(shell printf %d 0x$$(git rev-parse --short=15 HEAD^{tree} 2>/dev/null || echo 1))
test-crates: setup-test setup-virtual
	@echo "cases of property tests: PROPTEST_RNG_SEED=$$PROPTEST_RNG_SEED"
	cargo test --workspace --exclude millpond-python --locked

# The Python package, built as `make demo` is, installed into target/python and tested there.
PYTHON := target/python/bin
package: export CARGO_PROFILE_RELEASE_LTO = off
package: export CARGO_PROFILE_RELEASE_CODEGEN_UNITS = 16
package: export CARGO_PROFILE_RELEASE_DEBUG = false
package: export MATURIN_PEP517_ARGS = --profile release
package: setup-python
	@if [ -x $(PYTHON)/maturin ]; then \
		PATH="$(CURDIR)/$(PYTHON):$$PATH" $(PYTHON)/pip install --quiet --no-build-isolation \
			--force-reinstall --no-deps ./crates/python; \
	fi

test-python: package
	@$(MAKE) --no-print-directory pytest

# With the package that is installed.
pytest:
	@if [ -x $(PYTHON)/maturin ]; then \
		cd crates/python && $(CURDIR)/$(PYTHON)/python -B -m pytest -q -p no:cacheprovider $(ARGS); \
	else \
		echo "skipped: the Python package: Python 3.9 with venv, maturin or pytest is missing"; \
		[ "$$MILLPOND_NO_SKIP" != 1 ]; \
	fi

# And these draw them anew each time.
test-full: setup-test setup-virtual
	cargo test --workspace --exclude millpond-python --locked -- --include-ignored
	@$(MAKE) --no-print-directory test-python
	cargo check --locked --manifest-path fuzz/Cargo.toml

# ARGS: seconds for each target, and targets; without, a minute for each that there is.
fuzz: setup-fuzz
	scripts/fuzz.sh $(ARGS)

lint: setup
	cargo fmt --all --check
	python3 scripts/style.py
	python3 scripts/size.py --check
	python3 scripts/drawings.py --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy -p millpond-cli --no-default-features --all-targets --locked -- -D warnings
	@if cargo deny --version >/dev/null 2>&1; then \
		cargo deny check licenses bans sources; \
	else \
		echo "cargo-deny is not installed: licences of dependencies not checked (cargo install cargo-deny)"; \
	fi

bench: setup-bench
	./benches/run.sh
	./benches/virtual_switch.sh

bench-limit: setup-limit
	cargo build --release --locked -p millpond-cli
	python3 benches/limit/live.py $(ARGS)

bench-limit-cost: setup
	cargo run --release --locked -p millpond-linux --example cost

# The lab, beside the simulator; root.
bench-lab: setup
	./benches/lab.sh

bench-lab-peers: setup
	./benches/lab-peers.sh

# The simulator beside kernels in virtual time.
bench-judge: setup setup-virtual
	./benches/judge.sh

# Kernels in virtual time. ARGS: --boots N, how many worlds end by kill -9.
bench-virtual: setup setup-virtual
	cargo build --release --locked -p millpond-cli
	python3 benches/virtual.py target/release/millpond $(ARGS)

# The package and the command, both as they are shipped.
bench-python: setup-python
	cargo build --profile dist --locked -p millpond-cli --no-default-features
	PATH="$(CURDIR)/$(PYTHON):$$PATH" $(PYTHON)/pip install --quiet --no-build-isolation \
		--force-reinstall --no-deps ./crates/python
	$(PYTHON)/python benches/python.py target/dist/millpond $(ARGS)

bench-switch: setup
	cargo bench --locked -p millpond-port
	cargo build --release --locked -p millpond-cli
	@failed=0; \
	./benches/bridge.sh $(ARGS) || failed=1; \
	cargo test --release --locked -p millpond-linux --test switch -- --ignored --nocapture figures || failed=1; \
	cargo test --release --locked -p millpond-linux --test vhost -- --ignored --nocapture speed || failed=1; \
	exit $$failed
