# What a developer of Uptake runs. Each target is a line of help in `make help`.

.DEFAULT_GOAL := help
.PHONY: help demo test lint cluster chart need-rust need-go

include simulate.mk
include image.mk
include node.mk
include release.mk
include bench.mk

help: ## this list
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST)

demo: need-rust need-go ## a real control plane, nine consumers of one Secret, and what Uptake does (KEEP=1 leaves it up)
	@$(MAKE) --no-print-directory cluster
	cargo build --bin uptake --example demo
	@KEEP="$(KEEP)" cargo run --quiet --example demo

test: need-rust need-go ## everything that a change needs: rules, properties, the real API server, simulated histories
	@$(MAKE) --no-print-directory cluster TOOLS="helm promtool"
	rm -rf "$${CARGO_TARGET_DIR:-target}/cluster/audit"
	cargo test --lib --test cluster
	cargo test --test rights
	SEEDS=$(SEEDS) cargo test --profile simulation --test simulation

lint: need-rust ## formatting, clippy and docs, warnings denied
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --quiet

cluster: need-go ## the test cluster's programs, built into target/cluster/bin (K8S=1.34.4, TOOLS="helm promtool")
	@TOOLS="$(TOOLS)" K8S="$(K8S)" tests/cluster/build.sh

chart: need-rust need-go ## what is made from the chart: its README, the schema of its values, config/
	@$(MAKE) --no-print-directory cluster TOOLS=helm
	cargo run --quiet --example chart

# Nothing is ever installed on anybody's machine: what is missing is named.
need-rust:
	@command -v cargo >/dev/null || { echo "cargo is missing: install Rust 1.89 or newer with rustup" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "cc is missing: install a C compiler (Debian: apt-get install gcc)" >&2; exit 1; }

need-go:
	@command -v go >/dev/null || { echo "go is missing: install Go 1.26 or newer" >&2; exit 1; }
