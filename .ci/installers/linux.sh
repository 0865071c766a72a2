#!/usr/bin/env bash
# Builds the installers for Linux into dist/ and tries them on clean systems, on a bare Debian 12 (root):
#   bash .ci/installers/linux.sh
# NOT VERIFIED as a whole: of its steps, `make installers-test` was run. Needs no secrets.
set -euo pipefail
cd "$(dirname "$0")/../.."

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# the two lines of docs/installers.md
apt-get install -y -qq --no-install-recommends binutils dpkg-dev patchelf zstd squashfs-tools libsquashfuse-dev \
  libzstd-dev
apt-get install -y -qq --no-install-recommends appstream desktop-file-utils lintian mmdebstrap weston xvfb openbox \
  trayer xdotool python3-pyatspi iproute2
make installers-test
(cd dist && sha256sum -- *.deb *.AppImage | tee SHA256SUMS)
