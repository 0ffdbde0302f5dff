# A real node: kubelet, containerd and runc on this machine, for as long as the story takes. Included by the Makefile.
.PHONY: e2e need-root

E2E_IMAGES = $(abspath $(or $(CARGO_TARGET_DIR),target))/node/images

e2e: need-root need-rust need-go ## a real node, Uptake installed with Helm, and what processes print (root; MEASURE=200, KEEP=1, RECORD=docs/recording.svg)
	@tests/node/packages.sh
	@$(MAKE) --no-print-directory cluster TOOLS="helm node"
	@$(MAKE) --no-print-directory image
	@tests/node/images.sh "$(E2E_IMAGES)"
	@cp target/image/uptake-*-*.tar "$(E2E_IMAGES)/uptake.tar"
	cargo build --example e2e
	@MEASURE="$(MEASURE)" KEEP="$(KEEP)" RECORD="$(RECORD)" "$${CARGO_TARGET_DIR:-target}/debug/examples/e2e" \
		"$$(TOOLS="helm node" tests/cluster/build.sh)" "$(E2E_IMAGES)" \
		"$${CARGO_TARGET_DIR:-target}/$(IMAGE_TARGET)/release/uptake"

need-root:
	@[ "$$(id -u)" = 0 ] || { echo "a real node needs root: sudo make e2e" >&2; exit 1; }
