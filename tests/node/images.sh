#!/usr/bin/env bash
# images.sh FOLDER: the images of the node's own pods: the one that holds a pod's namespaces open, and the consumer, with
# and without a shell beside it.
set -euo pipefail
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/images"
export GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=-buildvcs=false
content=$(mktemp -d)
trap 'rm -rf "$content"' EXIT
for image in pause show; do
  mkdir "$content/$image"
  go build -trimpath -ldflags "-s -w" -o "$content/$image/app" "./$image"
done
cp -a "$content/show" "$content/shell"
install -D -m755 "$(command -v busybox)" "$content/shell/bin/busybox"
for name in sh tr grep; do ln -s busybox "$content/shell/bin/$name"; done
for image in pause show shell; do ./pack.sh "local/$image:1" "$content/$image" "$folder/$image.tar"; done
# The Secrets Store CSI driver's own CRDs, beside the images.
cd ../../cluster/go/csi
driver=$(go list -m -f '{{.Dir}}' sigs.k8s.io/secrets-store-csi-driver)
install -m644 "$driver"/config/crd/bases/*.yaml "$folder"
