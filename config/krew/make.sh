#!/usr/bin/env bash
# The plugin for krew: an archive of a built program, and the manifest of all archives of this version in that folder.
#
#   config/krew/make.sh FOLDER URL ARCH PROGRAM
#
# URL is where the folder's archives will be found, ARCH the architecture as `uname -m` says it. HOMEPAGE may be set.
set -euo pipefail
[ $# = 4 ] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
folder=$1 url=${2%/} program=$4
root=$(cd "$(dirname "$0")/../.." && pwd)
case $url in
  https://?*) ;;
  *) echo "\"$2\" is no address that begins with https://" >&2; exit 2 ;;
esac
case $3 in
  x86_64) arch=amd64 ;;
  aarch64) arch=arm64 ;;
  *) echo "no archive is made for $3" >&2; exit 2 ;;
esac
version=v$(sed -n 's|^version = "\(.*\)"|\1|p' "$root/Cargo.toml" | head -1)

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
install -m 0755 "$program" "$stage/uptake"
install -m 0644 "$root/LICENSE" "$stage/LICENSE"
mkdir -p "$folder"
# The same byte for byte whoever makes it.
tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-0}" \
  --format=ustar -cf - LICENSE uptake | gzip -9 -n >"$folder/uptake-$version-linux-$arch.tar.gz"

manifest=$folder/uptake.yaml
{
  sed -e '/^#/d' -e "s|^  version: .*|  version: $version|" -e '/^  platforms:/d' "$root/config/krew/uptake.template.yaml"
  [ -z "${HOMEPAGE:-}" ] || echo "  homepage: $HOMEPAGE"
  echo "  platforms:"
  for archive in "$folder/uptake-$version-"*.tar.gz; do
    name=$(basename "$archive")
    of=${name#"uptake-$version-"} of=${of%.tar.gz}
    cat <<END
    - selector:
        matchLabels: {os: ${of%-*}, arch: ${of#*-}}
      uri: $url/$name
      sha256: $(sha256sum "$archive" | cut -d' ' -f1)
      bin: uptake
      files:
        - {from: uptake, to: .}
        - {from: LICENSE, to: .}
END
  done
} >"$manifest"
ls "$folder/uptake-$version-"*.tar.gz "$manifest"
