#!/usr/bin/env bash
# Instead of inside.sh: does once what the parts of a node do. Its last line in the log says what it was at.
set -euo pipefail
address=10.88.0.1
PATH=$PATH:/usr/sbin:/sbin
echo "namespaces, mounts and kernel settings of its own"
. "$NODE/room.sh"

echo "cgroup controllers"
for controller in cpu cpuset memory pids; do
  grep -qE "(^|[:, ])$controller([:, ]|\$)" /proc/self/cgroup /sys/fs/cgroup/cgroup.controllers 2>/dev/null
done
echo "/dev/kmsg, which a kubelet reads"
: </dev/kmsg
echo "pairs of links"
ip link add v0 type veth peer name v1
ip link set v0 master cni0
echo "nftables"
nft add table ip kube-proxy
nft add chain ip kube-proxy services '{ type nat hook prerouting priority -100; }'
nft add rule ip kube-proxy services ip daddr 10.0.0.1 tcp dport 443 dnat to $address:27443
echo "overlayfs"
bundle=/var/tmp/bundle
mkdir -p $bundle/rootfs /var/tmp/{lower,upper,work}
install -D "$(command -v busybox)" /var/tmp/lower/bin/busybox
mkdir -p /var/tmp/lower/{dev,proc,sys}
mount -t overlay overlay -o lowerdir=/var/tmp/lower,upperdir=/var/tmp/upper,workdir=/var/tmp/work $bundle/rootfs
echo "a container of runc"
cd $bundle
runc spec
sed -i 's|"terminal": true|"terminal": false|; s|^\t\t\t"sh"$|"/bin/busybox", "true"|' config.json
runc --root /run/runc run trial
touch "$FOLDER/possible"
