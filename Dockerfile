# syntax=docker/dockerfile:1
# The image: one static program and its license, no shell, no user but a number.
#
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg REVISION=$(git rev-parse HEAD) .
#
# `make image` makes the same last stage without a container engine; it reads this file to do so.
ARG RUST=1.95
FROM rust:${RUST}-alpine AS build
RUN apk add --no-cache musl-dev
WORKDIR /src
COPY . .
ARG SOURCE_DATE_EPOCH=0
ENV RUSTFLAGS="--remap-path-prefix=/src=/src --remap-path-prefix=/usr/local/cargo=/cargo"
# On Alpine the target is musl, and its programs are static.
RUN --mount=type=cache,target=/usr/local/cargo/registry cargo build --release --locked --bin uptake
RUN install -D -m 0555 target/release/uptake /image/uptake
RUN install -D -m 0444 LICENSE /image/LICENSE
RUN find /image -exec touch -d "@${SOURCE_DATE_EPOCH}" {} +

FROM scratch
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Uptake" \
      org.opencontainers.image.description="Makes a Kubernetes Secret change reach the running pod, and proves that it did" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /image/ /
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/uptake"]
