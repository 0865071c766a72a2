#!/usr/bin/env bash
# Builds the engine packs for Linux on a bare Debian 12, whose old glibc makes them run on newer systems too:
#   bash .ci/engines/linux.sh FOLDER [BACKEND ...]
# Verified for vulkan. Not verified: cpu, cuda13, cuda12 (their compiler comes from the lock files in requirements/).
# hip needs AMD's ROCm image and is built only if hipcc is there. No secrets are needed.
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$(realpath -m "${1:?the folder for the packs}")
shift
backends=("${@:-cpu}")
[ $# -gt 0 ] || backends=(cpu vulkan cuda13 cuda12)
if command -v hipcc >/dev/null && [ $# -eq 0 ]; then backends+=(hip); fi

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
