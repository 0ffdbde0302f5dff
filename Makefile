# What a developer of Uptake runs. Each target is a line of help in `make help`.

.PHONY: help cluster

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST)

cluster: ## the test cluster's programs, built into target/cluster/bin (K8S=1.34.4, TOOLS="helm promtool")
	@TOOLS="$(TOOLS)" K8S="$(K8S)" tests/cluster/build.sh
