# The container image without a container engine: the Dockerfile's last stage as an OCI archive. Included by the Makefile.
ARCH ?= $(shell uname -m)
IMAGE_TARGET = $(ARCH)-unknown-linux-musl
# No musl compiler is needed where the system's own will do: the C in the program's libraries calls no libc.
IMAGE_CC = $(shell command -v $(ARCH)-linux-musl-gcc || command -v musl-gcc || echo cc)
IMAGE_ENV = $(subst -,_,$(IMAGE_TARGET))
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
STATIC_PROGRAM = $${CARGO_TARGET_DIR:-target}/$(IMAGE_TARGET)/release/uptake
.PHONY: image static

# Paths of the machine are no part of the program: two builds are the same byte for byte.
static: need-rust
	@rustc --print target-libdir --target $(IMAGE_TARGET) | xargs ls -d >/dev/null 2>&1 || \
		{ echo "the Rust target $(IMAGE_TARGET) is missing: rustup target add $(IMAGE_TARGET)" >&2; exit 1; }
	CC_$(IMAGE_ENV)="$(IMAGE_CC)" CFLAGS_$(IMAGE_ENV)="-U_FORTIFY_SOURCE" \
		RUSTFLAGS="--remap-path-prefix=$(CURDIR)=/src --remap-path-prefix=$${CARGO_HOME:-$$HOME/.cargo}=/cargo" \
		cargo build --release --locked --bin uptake --target $(IMAGE_TARGET)

image: static ## The container image as an OCI archive below target/image, without Docker (ARCH=aarch64)
	SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) REVISION=$(REVISION) \
		cargo run --quiet --example image -- $(ARCH) "$(STATIC_PROGRAM)"
