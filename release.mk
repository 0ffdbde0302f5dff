# What a release is checked with, and what of it the image isn't. Included by the Makefile.
.PHONY: deny sbom plugin need-url

plugin: need-url static ## The plugin for krew: its archive and manifest in target/plugin (URL=https://… where they will lie, ARCH=aarch64)
	@SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) HOMEPAGE="$(HOMEPAGE)" config/krew/make.sh target/plugin "$(URL)" $(ARCH) "$(STATIC_PROGRAM)"

need-url:
	@[ -n "$(URL)" ] || { echo "say where the archives will lie: make plugin URL=https://…" >&2; exit 2; }

deny: need-rust ## Licenses, sources and duplicates of all dependencies, against deny.toml
	@$(call need,cargo-deny)
	cargo deny --locked check bans licenses sources

# Of what is in the program, not of what tests it; a feature that only a test turns on (schemars) is more than there is. Paths of
# the machine are no part of it.
sbom: need-rust ## What the program is made of, as CycloneDX, in target/uptake.cdx.json
	@$(call need,cargo-cyclonedx)
	cargo cyclonedx --format json --target $(IMAGE_TARGET) --no-build-deps --override-filename uptake.cdx
	@mkdir -p target && sed 's|path+file://$(CURDIR)|path+file:///src|g' uptake.cdx.json >target/uptake.cdx.json
	@rm uptake.cdx.json && echo target/uptake.cdx.json

# A tool that is missing is named, never installed.
need = command -v $(1) >/dev/null || { echo "$(1) is missing: cargo install --locked $(1)" >&2; exit 1; }
