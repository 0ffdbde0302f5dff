#!/usr/bin/env bash
# Whether this machine can be a node: says why not, and fails. Looks, and installs packages where CI=true.
set -uo pipefail
no() {
  echo "$*"
  exit 1
}
[ "$(id -u)" = 0 ] || no "it needs root"
said=$("$(dirname "$0")/packages.sh" 2>&1) || no "${said##*$'\n'}"
unshare --mount --pid --fork --kill-child --mount-proc --net --uts --ipc --cgroup true 2>/dev/null ||
  no "namespaces can't be made here"
musl=$(uname -m)-unknown-linux-musl
[ -d "$(rustc --print target-libdir --target "$musl" 2>/dev/null)" ] ||
  { [ "${CI:-}" = true ] && rustup target add "$musl" >/dev/null 2>&1; } || no "the Rust target $musl is missing"
PATH=$PATH:/usr/sbin:/sbin
unshare --net bash -c 'ip link add br0 type bridge && ip link add v0 type veth peer name v1 && nft list ruleset' >/dev/null 2>&1 ||
  no "bridges, pairs of links or nftables can't be made here"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder"/{lower,upper,work,both}
unshare --mount mount -t overlay overlay \
  -o "lowerdir=$folder/lower,upperdir=$folder/upper,workdir=$folder/work" "$folder/both" 2>/dev/null ||
  no "overlayfs can't be mounted in ${TMPDIR:-/tmp}"
group=$(sed -nE 's/^[1-9][0-9]*:(memory|memory,[a-z_,]+|[a-z_,]+,memory):(.*)$/\/sys\/fs\/cgroup\/\1\2/p' /proc/self/cgroup)
group=${group:-/sys/fs/cgroup}
{ mkdir "$group/uptake-node-possible-$$" && rmdir "$group/uptake-node-possible-$$"; } 2>/dev/null ||
  no "cgroups can't be made here"
