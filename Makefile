# Feedline's toolbox: `make demo` and `make test` work on a fresh Debian or Ubuntu machine that has
# a Rust toolchain. `make bench` measures, `make golden` rewrites the recorded test results.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/feedline
# Outside the clone, so that a fresh clone reuses what an earlier one built.
export CARGO_TARGET_DIR ?= $(CACHE)/target

DEMO_DIR ?= $(CACHE)/demo
FEEDLINE := $(CARGO_TARGET_DIR)/release/feedline

SQL := --locked --manifest-path crates/sql/Cargo.toml

.PHONY: help demo sql test test-torch test-sql fmt lint bench fuzz golden toolchain

help:
	@echo "make demo        build Feedline, run a small job on local files and show the result"
	@echo "make sql         build feedline-sql, which queries traces in SQL (the first build takes long)"
	@echo "make test        install what the tests need and run all of them"
	@echo "make test-torch  run only the tests that need PyTorch (5.6 GB of disk space)"
	@echo "make test-sql    run only the tests of feedline-sql (DataFusion and Ballista)"
	@echo "make bench       compare Feedline with other tools and the machine's limits (see bench/peers.sh)"
	@echo "make fuzz        read damaged files: a million per format, and many traces (FEEDLINE_FUZZ=N for N)"
	@echo "make golden      rewrite the recorded results that tests compare with; review the diff"

demo: toolchain
	cargo build --release --locked --package feedline --package feedline-preload
	mkdir -p "$(DEMO_DIR)"
	@rm -rf "$(DEMO_DIR)/run"
	@echo "+ feedline run unet3d_h100 --quick --trace run"
	@"$(FEEDLINE)" run unet3d_h100 --quick \
	    --data "$(DEMO_DIR)/data" --out "$(DEMO_DIR)/result" --overwrite --trace "$(DEMO_DIR)/run"
	@echo
	@echo "+ feedline analyze run --html report.html"
	@"$(FEEDLINE)" analyze "$(DEMO_DIR)/run" --html "$(DEMO_DIR)/report.html" --overwrite
	@echo "page        $(DEMO_DIR)/report.html"
	@echo
	@echo "+ feedline trace -- tar czf result.tgz result"
	@cd "$(DEMO_DIR)" && "$(FEEDLINE)" trace -o trace --overwrite -- tar czf result.tgz result
	@echo "The data (2 GiB) is kept for the next demo; delete it with: rm -r $(DEMO_DIR)"

# DataFusion and Ballista are in a workspace of their own, which nothing else builds.
sql: toolchain
	cargo build --release --locked --package feedline
	cargo build --release $(SQL)
	@echo "$(CARGO_TARGET_DIR)/release/feedline-sql"

test: toolchain
	@tests/run.sh

# Part of `make test` if PyTorch fits on the disk; here it is an error if it does not.
test-torch: toolchain
	@tests/run.sh torch

test-sql: toolchain
	@tests/run.sh sql

fmt: toolchain
	cargo fmt --all --check
	cargo fmt --manifest-path crates/sql/Cargo.toml --check

lint: toolchain
	cargo clippy --locked --workspace --all-targets -- -D warnings

bench: toolchain
	@if command -v mpicc >/dev/null; then \
	    cargo build --release --locked --package feedline --features mpi && \
	    cargo build --release --locked --package feedline-ranks --features mpi --examples && \
	    install -D "$(FEEDLINE)" "$(CARGO_TARGET_DIR)/release/mpi/feedline"; \
	else echo "no MPI: skipping its measurements"; fi
	cargo build --release --locked --package feedline --package feedline-preload
	cargo build --release --locked --package feedline-bench --examples
	cargo build --release --locked --package feedline-s3-server --bins --examples
	cargo build --release --locked --package feedline-trace --example large
	@command -v python3 >/dev/null || { echo "error: no Python; install it with: \
	apt-get install -y python3" >&2; exit 2; }
	@PYTHONDONTWRITEBYTECODE=1 python3 bench/compare.py

fuzz: toolchain
	FEEDLINE_FUZZ=$${FEEDLINE_FUZZ:-1000000} cargo test --locked --release --package feedline-formats \
	    --test damage -- --nocapture
	FEEDLINE_FUZZ=$${FEEDLINE_FUZZ:-100000} cargo test --locked --release --package feedline-trace \
	    --test damage -- --nocapture

golden: toolchain
	FEEDLINE_GOLDEN=rewrite cargo test --locked --workspace --no-fail-fast
	@git status --short

toolchain:
	@command -v cargo >/dev/null || { echo "error: no Rust toolchain; install it with: \
	curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh" >&2; exit 2; }
	@command -v cc >/dev/null || { echo "error: no C compiler (Rust links with it); install it with: \
	apt-get install -y gcc libc6-dev" >&2; exit 2; }
