# Histories of a simulated cluster against the real engine. Included by the Makefile.
SEEDS ?= 20000
.PHONY: simulate planted mutants

simulate: ## Run SEEDS=n histories (FROM=n: from which seed; SEED=n: tell one in words)
	SEEDS=$(SEEDS) cargo test --profile simulation --test simulation

planted: ## Plant bugs, one after the other, and expect each to be found in SEEDS=n histories
	PLANTED=1 SEEDS=$(SEEDS) cargo test --profile simulation --test simulation
	python3 tests/simulation/planted.py $(SEEDS)

# The rooms without I/O, by how much a wrong line would hurt.
PURE ?= src/decide/*.rs src/agenda/*.rs src/ledger/history.rs src/ledger/marks.rs src/ledger/digest.rs src/rollout/status.rs \
	src/rollout/stamp.rs src/rollout/outcome.rs src/catalog/index.rs src/catalog/references/*.rs
# Of all changes only the k-th of every n: SHARD=k/n. The tests of rooms that the changed ones know nothing of are left out.
SHARD ?=
mutants: ## Change the pure rooms line by line, and expect a test to notice (PURE=files, SHARD=0/20; all takes hours; needs cargo-mutants)
	@cargo mutants --version >/dev/null 2>&1 || { echo "cargo-mutants is missing: cargo install --locked cargo-mutants" >&2; exit 1; }
	cargo mutants --package uptake --output target --baseline skip --timeout 600 \
		$(foreach file,$(PURE),--file '$(file)') $(if $(SHARD),--shard $(SHARD) --sharding round-robin) \
		-- --lib -- $(foreach room,cli cluster watch record server probe config,--skip $(room)::) || true
	python3 tests/simulation/mutants.py target/mutants.out
