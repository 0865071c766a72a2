#!/usr/bin/env bash
# Runs a command in a fresh Debian 12 with this checkout in it, on any Linux with apt (root):
#   sudo bash .ci/debian.sh bash .ci/run
# Debian's own signatures vouch for what is installed. Files that the command writes into the checkout stay there.
# NOT VERIFIED: it was never run.
set -euo pipefail
[ $# -gt 0 ] || { echo "the command to run is missing" >&2; exit 2; }
checkout=$(cd "$(dirname "$0")/.." && pwd)
root=${POOLHOUSE_DEBIAN:-/var/tmp/poolhouse-debian}

if ! command -v mmdebstrap >/dev/null; then
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends mmdebstrap debian-archive-keyring
fi
if [ ! -e "$root/etc/debian_version" ]; then
  mmdebstrap --variant=important --include=ca-certificates,git,make,build-essential,python3,python3-venv \
    --keyring=/usr/share/keyrings/debian-archive-keyring.gpg bookworm "$root" \
    ${POOLHOUSE_DEBIAN_MIRROR:+"$POOLHOUSE_DEBIAN_MIRROR"}
fi
mounted=()
finish() {
  for ((n = ${#mounted[@]} - 1; n >= 0; n--)); do umount --lazy "${mounted[n]}"; done
}
trap finish EXIT
enter() { mkdir -p "$root$2" && mount "${@:3}" "$1" "$root$2" && mounted+=("$root$2"); }
enter proc /proc -t proc
enter /sys /sys --rbind --make-rslave
enter /dev /dev --rbind --make-rslave
enter "$checkout" "$checkout" --bind
cp -L /etc/resolv.conf "$root/etc/resolv.conf"

home=~root
chroot "$root" env -i HOME="$home" LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin CI="${CI:-}" \
  sh -c 'git config --global --add safe.directory "$1" && cd "$1" && shift && exec "$@"' run "$checkout" "$@"
