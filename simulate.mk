# Histories of a simulated cluster against the real engine. Included by the Makefile.
SEEDS ?= 20000
.PHONY: simulate planted

simulate: ## Run SEEDS=n histories (FROM=n: from which seed; SEED=n: tell one in words)
	SEEDS=$(SEEDS) cargo test --profile simulation --test simulation

planted: ## Plant bugs, one after the other, and expect each to be found in SEEDS=n histories
	PLANTED=1 SEEDS=$(SEEDS) cargo test --profile simulation --test simulation
	python3 tests/simulation/planted.py $(SEEDS)
