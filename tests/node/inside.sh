#!/usr/bin/env bash
# The first process of the node's namespaces; started by boot.sh. Outside them nothing of it can be seen but files
# below $FOLDER and the node's cgroups.
set -euo pipefail
export PATH=$PROGRAMS:$PATH:/usr/sbin
export address=10.88.0.1
. "$NODE/room.sh"

start() { # NAME PROGRAM ARGUMENTS
  local name=$1
  shift
  "$@" >"$FOLDER/$name.log" 2>&1 &
  echo $! >"/run/pids/$name"
}
kubeconfig() { # FILE TOKEN
  cat >"$1" <<Y
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:27443", tls-server-name: $address, certificate-authority: $FOLDER/pki/apiserver.crt}}]
users: [{name: u, user: {token: $2}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
Y
}
mkdir "$FOLDER/pki"
openssl genrsa -out "$FOLDER/pki/sa.key" 2048 2>/dev/null
cat >"$FOLDER/pki/tokens.csv" <<T
admin-token,admin,admin,system:masters
node-token,system:node:node,node,system:nodes
T
kubeconfig "$FOLDER/admin.conf" admin-token
kubeconfig "$FOLDER/kubelet.conf" node-token
export KUBECONFIG=$FOLDER/admin.conf

sed "s|@PROGRAMS@|$PROGRAMS|; s|@CONF@|$NODE/conf|" "$NODE/conf/containerd.toml" >/run/containerd.toml
start containerd containerd --config /run/containerd.toml
start etcd etcd --data-dir "$FOLDER/etcd" --unsafe-no-fsync --listen-client-urls http://127.0.0.1:24790 \
  --advertise-client-urls http://127.0.0.1:24790 --listen-peer-urls http://127.0.0.1:24800
start apiserver kube-apiserver --etcd-servers http://127.0.0.1:24790 --secure-port 27443 --advertise-address $address \
  --cert-dir "$FOLDER/pki" --token-auth-file "$FOLDER/pki/tokens.csv" --authorization-mode Node,RBAC \
  --service-account-issuer https://kubernetes.default.svc --service-account-key-file "$FOLDER/pki/sa.key" \
  --service-account-signing-key-file "$FOLDER/pki/sa.key" --service-cluster-ip-range 10.0.0.0/24 \
  --kubelet-preferred-address-types InternalIP
until ctr version >/dev/null 2>&1; do sleep 0.1; done
for archive in "$IMAGES"/*.tar; do
  base=() # an OCI archive knows its tag only
  [[ $(tar -tf "$archive") != *oci-layout* ]] || base=(--base-name "docker.io/library/$(basename "$archive" .tar)")
  ctr -n k8s.io images import "${base[@]}" "$archive" >>"$FOLDER/import.log" 2>&1
done
until kubectl get --raw /readyz >/dev/null 2>&1; do sleep 0.2; done
as_admin=(--kubeconfig "$KUBECONFIG" --authentication-kubeconfig "$KUBECONFIG" --authorization-kubeconfig "$KUBECONFIG"
  --leader-elect=false --bind-address 127.0.0.1)
start controller-manager kube-controller-manager "${as_admin[@]}" --secure-port 27444 --cert-dir "$FOLDER/pki" \
  --flex-volume-plugin-dir /var/lib/kubelet/volumeplugins --service-account-private-key-file "$FOLDER/pki/sa.key" \
  --root-ca-file "$FOLDER/pki/apiserver.crt" --node-monitor-grace-period 16s
start scheduler kube-scheduler "${as_admin[@]}" --secure-port 27445
start kubelet kubelet --config "$NODE/conf/kubelet.yaml" --kubeconfig "$FOLDER/kubelet.conf" --hostname-override node \
  --node-ip $address
start proxy kube-proxy --proxy-mode nftables --kubeconfig "$KUBECONFIG" --hostname-override node \
  --cluster-cidr 10.88.0.0/16 --metrics-bind-address 127.0.0.1:27249 --healthz-bind-address "" \
  --conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0 --conntrack-tcp-timeout-close-wait 0
touch "$FOLDER/started"
wait
