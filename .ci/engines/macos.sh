#!/usr/bin/env bash
# Builds the engine packs for macOS (one run on an Apple processor, one on an Intel one):
#   bash .ci/engines/macos.sh FOLDER
# NOT VERIFIED: nobody has run this yet. Needs Xcode's command line tools and Python 3.11 to 3.13; no secrets.
set -euo pipefail
mkdir -p "${1:?the folder for the packs}"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
make setup
for backend in metal; do
  make engine BACKEND="$backend"
  cp build/engines/"$backend"-*.tar.gz "$folder"
done
(cd "$folder" && shasum -a 256 -- *.tar.gz | tee SHA256SUMS)
