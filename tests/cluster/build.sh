#!/usr/bin/env bash
# Builds the test cluster's programs from the Go module proxy and prints their folder as the last line.
#
#   tests/cluster/build.sh                    etcd, the control plane, kubectl and kwok
#   TOOLS="helm promtool" tests/cluster/build.sh    these as well
#   TOOLS=node tests/cluster/build.sh         what a real node runs as well: kubelet, kube-proxy, containerd, CNI plugins,
#                                             the Secrets Store CSI driver and a provider for it
#   K8S=1.34.4 tests/cluster/build.sh         another Kubernetes, in a folder of its own
#
# Progress goes to stderr, the folder to stdout: the tests run this script and read its answer. Nothing is
# installed, and a program that is already there in the right version is not built again. Two runs may share
# the folder: one waits for the other, and a program appears in it complete or not at all.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
modules=$root/tests/cluster/go
pinned=$(sed -n 's|^\tk8s.io/kubernetes v||p' "$modules/k8s/go.mod" | cut -d' ' -f1)
version=${K8S:-$pinned}
version=${version#v}
work=${CARGO_TARGET_DIR:-$root/target}/cluster
bin=$work/bin
[ "$version" = "$pinned" ] || bin=$work/bin-$version
stamps=$bin/.built
mkdir -p "$stamps"

say() { echo "cluster: $*" >&2; }
fail() {
  say "$*"
  exit 1
}

# program | module folder | package | version
k=k8s.io/kubernetes/cmd
etcd_version=$(sed -n 's|^\tgo.etcd.io/etcd/server/v3 v||p' "$modules/k8s/go.mod" | cut -d' ' -f1)
kwok_version=$(sed -n 's|^\tsigs.k8s.io/kwok v||p' "$modules/kwok/go.mod" | cut -d' ' -f1)
programs=(
  "etcd|k8s|go.etcd.io/etcd/server/v3|$etcd_version"
  "kube-apiserver|kubernetes|$k/kube-apiserver|$version"
  "kube-controller-manager|kubernetes|$k/kube-controller-manager|$version"
  "kube-scheduler|kubernetes|$k/kube-scheduler|$version"
  "kubectl|kubernetes|$k/kubectl|$version"
  "kwok|kwok|sigs.k8s.io/kwok/cmd/kwok|$kwok_version"
)
add_node() {
  local containerd=github.com/containerd/containerd/v2 plugins=github.com/containernetworking/plugins
  local versions=$modules/containerd/go.mod containerd_version plugins_version program
  containerd_version=$(sed -n "s|^\t$containerd v||p" "$versions" | cut -d' ' -f1)
  plugins_version=$(sed -n "s|^\t$plugins v||p" "$versions" | cut -d' ' -f1)
  for program in kubelet kube-proxy; do programs+=("$program|kubernetes|$k/$program|$version"); done
  for program in containerd containerd-shim-runc-v2 ctr; do
    programs+=("$program|containerd|$containerd/cmd/$program|$containerd_version")
  done
  local driver=sigs.k8s.io/secrets-store-csi-driver driver_version provider_version
  driver_version=$(sed -n "s|^\t$driver v||p" "$modules/csi/go.mod" | cut -d' ' -f1)
  provider_version=$(sha256sum "$modules/csi/provider/main.go" | cut -c1-12)
  programs+=("secrets-store-csi-driver|csi|$driver/cmd/secrets-store-csi-driver|$driver_version"
    "csi-provider|csi|csi/provider|$provider_version")
  for program in main/bridge ipam/host-local; do
    programs+=("${program#*/}|containerd|$plugins/plugins/$program|$plugins_version")
  done
}
for tool in ${TOOLS:-} "$@"; do
  [ "$tool" != node ] || { add_node; continue; }
  module=$modules/$tool/go.mod
  [ -f "$module" ] || fail "unknown tool \"$tool\": there is no $module"
  package=$(sed -n 's|^tool ||p' "$module")
  tool_version=$(sed -nE "s|^\t?(require )?(${package%%/cmd/*}) v([^ ]+).*|\3|p" "$module" | head -1)
  programs+=("$tool|$tool|$package|$tool_version")
done

is_built() { [ -x "$bin/$1" ] && [ -r "$stamps/$1" ] && [ "$(<"$stamps/$1")" = "$2" ]; }
all_built() {
  local program name program_version
  for program in "${programs[@]}"; do
    IFS='|' read -r name _ _ program_version <<<"$program"
    is_built "$name" "$program_version" || return 1
  done
}

# The usual case, and the tests ask before every boot: no lock, no Go, a few milliseconds.
if all_built; then
  echo "$bin"
  exit
fi
if command -v flock >/dev/null; then
  exec 9>"$bin/.lock"
  flock -n 9 || { say "another build is running in $bin, waiting for it"; flock 9; }
fi

# Programs of the right version that the caller already has (the envtest convention) are linked, not built.
link_asset() {
  local asset=${KUBEBUILDER_ASSETS:-}/$1 said
  [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$asset" ] || return 1
  case $1 in
    kubectl) said=$("$asset" version --client 2>/dev/null) || return 1 ;;
    *) said=$("$asset" --version 2>/dev/null) || return 1 ;;
  esac
  grep -qE "(^|[^0-9.])${2//./\\.}([^0-9.]|\$)" <<<"$said" || return 1
  ln -sfn "$asset" "$bin/$1"
  echo "$2" >"$stamps/$1"
}

need_go() {
  command -v go >/dev/null || fail "Go is missing: it builds the test cluster. Install Go $(sed -n 's|^go ||p' \
    "$modules/k8s/go.mod") or newer (https://go.dev/dl) so that \"go\" is on the PATH, or set KUBEBUILDER_ASSETS."
}

# A module that builds another Kubernetes: its own go.mod names the staging modules, all released as 0.x.y.
write_kubernetes_module() {
  local folder=$work/go-$version upstream staging
  mkdir -p "$folder"
  upstream=$(cd "$folder" && go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's|.*"GoMod": "\(.*\)".*|\1|p')
  [ -f "$upstream" ] || fail "there is no Kubernetes $version in the Go module proxy"
  staging=$(sed -n 's|^\t\(k8s.io/[^ ]*\) => ./staging/.*|\1|p' "$upstream")
  {
    printf 'module cluster\n\n%s\n%s\n\n' "$(grep '^go ' "$upstream")" "$(grep '^godebug ' "$upstream" || true)"
    printf 'require k8s.io/kubernetes v%s\n\nreplace (\n' "$version"
    for module in $staging; do printf '\t%s => %s v0.%s\n' "$module" "$module" "${version#1.}"; done
    printf ')\n'
  } >"$folder/go.mod"
  echo "$folder"
}

build() {
  local name=$1 module=$2 package=$3 program_version=$4 folder=$modules/$2 flags="-s -w" mod=readonly tags=
  if [ "$module" = containerd ]; then
    # Without the snapshotters that need C libraries. The shim tells its version, and containerd asks for it.
    tags=no_btrfs,no_devmapper,no_zfs
    flags="$flags -X github.com/containerd/containerd/v2/version.Version=v$program_version"
  fi
  if [ "$module" = kubernetes ]; then
    flags="$flags -X k8s.io/component-base/version.gitVersion=v$program_version"
    if [ "$version" = "$pinned" ]; then
      folder=$modules/k8s
    else
      folder=$work/go-$version mod=mod
      [ -f "$folder/go.sum" ] || folder=$(write_kubernetes_module)
    fi
  fi
  # Built beside its place and moved there: a half-written program is never run.
  (cd "$folder" && go build -v -mod="$mod" -tags "$tags" -trimpath -ldflags "$flags" -o "$bin/.$name.$$" "$package") \
    >"$bin/.$name.log" 2>&1 9>&- &
  pid=$!
  local began=$SECONDS next=$((SECONDS + 15))
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
    if ((SECONDS >= next)); then
      say "  $name: $((SECONDS - began)) s, $(grep -c '^go: downloading' "$bin/.$name.log" || true) modules fetched," \
        "$(grep -cv '^go: ' "$bin/.$name.log" || true) packages compiled"
      next=$((SECONDS + 15))
    fi
  done
  local ended=0
  wait "$pid" || ended=$?
  pid=
  if [ "$ended" != 0 ]; then
    grep -v '^[a-z0-9.-]*/[^ ]*$' "$bin/.$name.log" | tail -20 >&2
    rm -f "$bin/.$name.$$"
    fail "building $name $program_version failed; everything it said is in $bin/.$name.log"
  fi
  mv -f "$bin/.$name.$$" "$bin/$name"
  echo "$program_version" >"$stamps/$name"
  rm -f "$bin/.$name.log"
}

# Ctrl-C ends the compiler too: a background job of a script does not see it by itself.
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; rm -f "$bin"/.*."$$"' EXIT
trap 'exit 130' INT TERM
export GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=-buildvcs=false
n=0
for program in "${programs[@]}"; do
  IFS='|' read -r name module package program_version <<<"$program"
  n=$((n + 1))
  is_built "$name" "$program_version" && continue
  if link_asset "$name" "$program_version"; then
    say "$n of ${#programs[@]}: $name $program_version linked from KUBEBUILDER_ASSETS"
    continue
  fi
  need_go
  say "$n of ${#programs[@]}: building $name $program_version"
  began=$SECONDS
  build "$name" "$module" "$package" "$program_version"
  say "$n of ${#programs[@]}: $name $program_version built in $((SECONDS - began)) s"
done
echo "$bin"
