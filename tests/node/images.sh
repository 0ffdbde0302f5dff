#!/usr/bin/env bash
# images.sh FOLDER: the images of the node's own pods: the one that holds a pod's namespaces open, and the consumer.
set -euo pipefail
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/images"
export GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=-buildvcs=false
for image in pause show; do
  go build -trimpath -ldflags "-s -w" -o "$folder/$image" "./$image"
  ./pack.sh "local/$image:1" "$folder/$image" "$folder/$image.tar"
done
