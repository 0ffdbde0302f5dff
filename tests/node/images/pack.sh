#!/usr/bin/env bash
# pack.sh NAME:TAG STATIC_BINARY OUT.tar: an image whose only file and entrypoint is that binary, as `ctr images import`
# reads it. Same input, same digest.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
install -D -m755 "$2" "$folder/root/app"
tar -C "$folder/root" --owner=0 --group=0 --numeric-owner --mtime=@0 -cf "$folder/layer.tar" app
diff_id=$(sha256sum <"$folder/layer.tar" | cut -d' ' -f1)
architecture=$(cd "$(dirname "$0")" && go env GOARCH)
cat >"$folder/config.json" <<J
{"architecture":"$architecture","os":"linux","config":{"Entrypoint":["/app"]},"rootfs":{"type":"layers","diff_ids":["sha256:$diff_id"]}}
J
cat >"$folder/manifest.json" <<J
[{"Config":"config.json","RepoTags":["$1"],"Layers":["layer.tar"]}]
J
tar -C "$folder" --owner=0 --group=0 --mtime=@0 -cf "$3" manifest.json config.json layer.tar
