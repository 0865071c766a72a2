#!/usr/bin/env bash
# Builds the engine packs for Linux on a bare Debian 12, whose old glibc makes them run on newer systems too:
#   bash .ci/engines/linux.sh FOLDER [BACKEND ...]
# NOT VERIFIED as a whole: of its steps, `make engine` was run for vulkan. The compiler of cuda13 and cuda12 comes
# from the lock files in requirements/. hip needs AMD's ROCm image and is built only if hipcc is there. No secrets are needed.
set -euo pipefail
folder=$(realpath -m "${1:?the folder for the packs}")
shift
cd "$(dirname "$0")/../.."

backends=("$@")
if [ $# -eq 0 ]; then
  backends=(vulkan cuda13 cuda12)
  if command -v hipcc >/dev/null; then backends+=(hip); fi
fi

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends build-essential ca-certificates git make python3 python3-venv
fi

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
make setup
mkdir -p "$folder"
for backend in "${backends[@]}"; do
  make engine BACKEND="$backend" ARGS="--architectures all"
  cp build/engines/"$backend"-*.tar.gz "$folder"
done
(cd "$folder" && sha256sum -- *.tar.gz | tee SHA256SUMS)
