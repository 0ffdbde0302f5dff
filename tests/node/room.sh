# What a node has of its own, made by the first process of its namespaces: its cgroups, /sys, /run and /var, kernel settings,
# and a network. Sourced by inside.sh and by trial.sh.
# shellcheck shell=bash
touch "$FOLDER/entered"
until [ -e "$FOLDER/placed" ]; do sleep 0.05; done
hostname node

# Own /sys with own cgroup mounts, own /run and /var.
v1=$(sed -nE 's/^[1-9][0-9]*:([a-z_,]+):.*/\1/p' /proc/self/cgroup)
umount -R /sys
mount -t sysfs sysfs /sys
if [ -n "$v1" ]; then
  mount -t tmpfs tmpfs /sys/fs/cgroup
  for controllers in $v1; do
    mkdir "/sys/fs/cgroup/$controllers"
    mount -t cgroup -o "$controllers" cgroup "/sys/fs/cgroup/$controllers"
  done
else
  mount -t cgroup2 cgroup /sys/fs/cgroup
  for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
    echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
  done
fi
mount -t tmpfs tmpfs /run
mkdir -p "$FOLDER/var"/{lib,log,tmp} /run/pids
ln -s /run "$FOLDER/var/run"
mount --bind "$FOLDER/var" /var
# The kubelet sets these kernel settings; it gets files of the same name, so that the machine keeps its own.
for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys \
  kernel/keys/root_maxbytes; do
  mkdir -p "/run/sysctl/${setting%/*}"
  cat "/proc/sys/$setting" >"/run/sysctl/$setting"
  mount --bind "/run/sysctl/$setting" "/proc/sys/$setting"
done
mount --make-rshared /
# Own network: loopback, and the pods' bridge, whose address is also the node's.
ip link set lo up
ip link add cni0 type bridge
ip addr add $address/16 dev cni0
ip link set cni0 up
