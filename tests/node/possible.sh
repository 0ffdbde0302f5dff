#!/usr/bin/env bash
# Whether this machine can be a node: says why not, and fails. It tries what a node does, and leaves nothing behind;
# packages are installed only where CI=true.
set -uo pipefail
cd "$(dirname "$0")"
no() {
  echo "$*"
  exit 1
}
[ "$(uname -s)" = Linux ] || no "it needs Linux"
[ "$(id -u)" = 0 ] || no "it needs root"
[ "$(nproc)" -ge 2 ] || no "it needs two processors"
memory=$(awk '/^MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
[ "$memory" -ge 3072 ] || no "it needs 3 GiB of free memory, here are $memory MiB"
disk=$(df --output=avail -m "${TMPDIR:-/tmp}" | tail -1)
[ "$disk" -ge 6144 ] || no "it needs 6 GiB in ${TMPDIR:-/tmp}, here are $((disk)) MiB"
said=$(timeout 300 ./packages.sh 2>&1) || no "packages: ${said##*$'\n'}"
musl=$(uname -m)-unknown-linux-musl
[ -d "$(rustc --print target-libdir --target "$musl" 2>/dev/null)" ] ||
  { [ "${CI:-}" = true ] && timeout 300 rustup target add "$musl" >/dev/null 2>&1; } || no "the Rust target $musl is missing"

# boot.sh goes on while somebody holds its input open.
folder=$(mktemp -d "${TMPDIR:-/tmp}/uptake-node-XXXXXX")
touch "$folder/keep"
trap 'rm -rf "$folder"' EXIT
exec {input}> >(exec env INSIDE=trial.sh ./boot.sh "$folder" / / >"$folder/boot.log" 2>&1)
boot=$!
ended() {
  [ -e "$folder/possible" ] || ! kill -0 "$boot" 2>/dev/null || { [ -s "$folder/pid" ] && ! kill -0 "$(<"$folder/pid")" 2>/dev/null; }
}
deadline=$((SECONDS + 60))
until ended || ((SECONDS > deadline)); do sleep 0.1; done
exec {input}>&-
while kill -0 "$boot" 2>/dev/null && ((SECONDS < deadline + 30)); do sleep 0.1; done
[ -e "$folder/possible" ] || no "tried and failed: $(cat "$folder/boot.log" "$folder/inside.log" 2>/dev/null | tail -2 | tr '\n' ' ')"
! grep -q "left behind" "$folder/boot.log" || no "$(cat "$folder/boot.log")"
