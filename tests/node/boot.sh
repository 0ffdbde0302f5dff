#!/usr/bin/env bash
# boot.sh FOLDER PROGRAMS IMAGES: a real one-node cluster in namespaces and cgroups of its own, for as long as its owner lives.
# INSIDE=trial.sh only tries whether there could be one.
#
# The owner holds the other end of this script's standard input and writes nothing to it. It closes when the owner drops
# the node, panics, is interrupted or is killed -9: then the first process of the pid namespace is killed and takes all
# others with it, pods too; with the last process go the mounts and the network; the cgroups and the folder are
# removed. If the folder holds a file `keep`, the logs stay. If this script itself is killed -9, the kernel kills the first
# process; its cgroups and its folder are removed by the next one that is started.
set -euo pipefail
export FOLDER=$1 PROGRAMS=$2 IMAGES=$3
NODE=$(cd "$(dirname "$0")" && pwd)
export NODE
name=uptake-node-$$
echo $$ >"$FOLDER/owner"

remove_cgroup() {
  local _
  for _ in {1..100}; do
    [ -d "$1" ] || return 0
    find "$1" -name cgroup.procs -exec cat {} + 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
    find "$1" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
  done
  echo "left behind: $1" >&2
}

# What nodes left whose boot.sh is no more.
runs() { grep -qs boot.sh "/proc/$1/cmdline"; }
for cgroup in $(find /sys/fs/cgroup -maxdepth 8 -type d -name 'uptake-node-[0-9]*' -prune 2>/dev/null); do
  runs "${cgroup##*-}" || remove_cgroup "$cgroup"
done
for owner in "${FOLDER%/*}"/uptake-node-*/owner; do
  folder=${owner%/owner}
  [ ! -e "$owner" ] || [ -e "$folder/keep" ] || runs "$(<"$owner")" || rm -rf "$folder"
done

cgroups=() unshared=
down() {
  trap '' INT TERM
  local pid
  for pid in ${unshared:+$(cat "/proc/$unshared/task/$unshared/children" 2>/dev/null)} $unshared; do
    kill -KILL "$pid" 2>/dev/null || true
    while grep -qs '^State:.[^ZX]' "/proc/$pid/status"; do sleep 0.05; done
  done
  { wait $unshared; } 2>/dev/null || true # its end was meant, and is no news
  local cgroup
  for cgroup in "${cgroups[@]}"; do remove_cgroup "$cgroup"; done
  if [ -e "$FOLDER/keep" ]; then
    rm -rf "$FOLDER/etcd" "$FOLDER/var"
  else
    rm -rf "$FOLDER"
  fi
}
trap down EXIT
trap 'exit 130' INT TERM

# Cgroups of the node: below those of this process; with cgroup v2 below the root, for only there processes and
# controllers may be side by side.
if grep -q '^[1-9]' /proc/self/cgroup; then
  while IFS=: read -r _ controllers path; do
    [[ -n $controllers && $controllers != name=* ]] || continue
    cgroups+=("/sys/fs/cgroup/$controllers${path%/}/$name")
    mkdir "${cgroups[-1]}"
    for inherited in cpuset.cpus cpuset.mems; do
      [ ! -e "${cgroups[-1]}/$inherited" ] || cat "${cgroups[-1]%/*}/$inherited" >"${cgroups[-1]}/$inherited"
    done
  done </proc/self/cgroup
else
  for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
    echo "+$controller" 2>/dev/null >/sys/fs/cgroup/cgroup.subtree_control || true
  done
  cgroups+=("/sys/fs/cgroup/$name")
  mkdir "${cgroups[-1]}"
fi

# In its cgroups before its cgroup namespace is made: they are the roots it sees.
(
  for cgroup in "${cgroups[@]}"; do echo "$BASHPID" >"$cgroup/cgroup.procs"; done
  exec setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc --net --uts --ipc --cgroup \
    bash "$NODE/${INSIDE:-inside.sh}" >"$FOLDER/inside.log" 2>&1 </dev/null
) &
unshared=$!
echo "$unshared" >"$FOLDER/pid"

until [ -e "$FOLDER/entered" ] || ! kill -0 "$unshared" 2>/dev/null; do sleep 0.05; done
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then # v2: no processes beside the pods' cgroups
  mkdir "${cgroups[0]}/init"
  for pid in $(cat "${cgroups[0]}/cgroup.procs"); do echo "$pid" >"${cgroups[0]}/init/cgroup.procs"; done
fi
touch "$FOLDER/placed"
cat >/dev/null
