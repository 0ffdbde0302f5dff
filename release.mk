# What a release is checked with. Included by the Makefile.
.PHONY: deny sbom

deny: need-rust ## Licenses, sources and duplicates of all dependencies, against deny.toml
	@$(call need,cargo-deny)
	cargo deny --locked check bans licenses sources

# Of what is in the program, not of what tests it.
sbom: need-rust ## What the program is made of, as CycloneDX, in target/uptake.cdx.json
	@$(call need,cargo-cyclonedx)
	cargo cyclonedx --format json --target $(IMAGE_TARGET) --no-build-deps --override-filename uptake.cdx
	@mkdir -p target && mv uptake.cdx.json target/uptake.cdx.json && echo target/uptake.cdx.json

# A tool that is missing is named, never installed.
need = command -v $(1) >/dev/null || { echo "$(1) is missing: cargo install --locked $(1)" >&2; exit 1; }
