#!/usr/bin/env bash
# pack.sh NAME:TAG FOLDER OUT.tar: an image with the folder's content, whose entrypoint is its file app, as
# `ctr images import` reads it. Same input, same digest.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tar -C "$2" --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX --mtime=@0 -cf "$folder/layer.tar" .
diff_id=$(sha256sum <"$folder/layer.tar" | cut -d' ' -f1)
cat >"$folder/config.json" <<J
{"architecture":"$(go env GOARCH)","os":"linux","config":{"Entrypoint":["/app"]},"rootfs":{"type":"layers","diff_ids":["sha256:$diff_id"]}}
J
cat >"$folder/manifest.json" <<J
[{"Config":"config.json","RepoTags":["$1"],"Layers":["layer.tar"]}]
J
tar -C "$folder" --owner=0 --group=0 --mtime=@0 -cf "$3" manifest.json config.json layer.tar
