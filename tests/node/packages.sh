#!/usr/bin/env bash
# Names what the node needs of the machine and doesn't find. Installed is only where CI=true: that machine is thrown away.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
missing=()
while read -r program package; do
  command -v "$program" >/dev/null || missing+=("$package")
done <<P
runc runc
nft nftables
ip iproute2
nsenter util-linux
setpriv util-linux
openssl openssl
busybox busybox-static
prometheus prometheus
P
# Debian has a busybox that needs a loader, which an image without anything else hasn't.
! ldd "$(command -v busybox)" >/dev/null 2>&1 || missing+=(busybox-static)
[ "${#missing[@]}" -gt 0 ] || exit 0
if [ "${CI:-}" = true ]; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
  echo "missing: ${missing[*]} (Debian: apt-get install --no-install-recommends ${missing[*]})" >&2
  exit 1
fi
