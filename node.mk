# A real node: kubelet, containerd and runc on this machine, for as long as the story takes. Included by the Makefile.
.PHONY: e2e e2e-programs need-root

E2E = $(abspath $(or $(CARGO_TARGET_DIR),target))

e2e: e2e-programs ## a real node, Uptake installed with Helm, and what processes print (root; MEASURE=200, ONLY=measure, ONLY=teardown, KEEP=1, RECORD=docs/recording.svg)
	@MEASURE="$(MEASURE)" ONLY="$(ONLY)" KEEP="$(KEEP)" RECORD="$(RECORD)" $(E2E)/debug/examples/e2e \
		"$$(TOOLS="helm node" tests/cluster/build.sh)" $(E2E)/node/images $(E2E)/$(IMAGE_TARGET)/release/uptake

e2e-programs: need-root need-rust need-go
	@tests/node/packages.sh
	@$(MAKE) --no-print-directory cluster TOOLS="helm node"
	@$(MAKE) --no-print-directory image
	@tests/node/images.sh $(E2E)/node/images
	@cp target/image/uptake-*-*.tar $(E2E)/node/images/uptake.tar
	cargo build --example e2e

need-root:
	@[ "$$(id -u)" = 0 ] || { echo "a real node needs root: sudo make e2e" >&2; exit 1; }
