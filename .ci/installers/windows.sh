#!/usr/bin/env bash
# Builds the setup program for Windows into dist/ and tries it under Wine, on a bare Debian 12 (root):
#   bash .ci/installers/windows.sh
# NOT VERIFIED as a whole: of its steps, the build and the tests with the stand-in for Python were run. No secrets.
set -euo pipefail
cd "$(dirname "$0")/../.."

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# the third line of docs/installers.md, and what it takes of the first
apt-get install -y -qq --no-install-recommends binutils dpkg-dev g++-mingw-w64-x86-64-posix nsis wine64 curl
make installers ARGS="windows --stand-in"
.venv/bin/python -m pytest -q -rs tests/installers/test_windows_*.py
rm dist/*-test-only-setup.exe # its Python is only for tests

# Python as its makers published it. The build compares its SHA-256.
name() { .venv/bin/python -c "from installers.windows import python; print(python.$1)"; }
version=$(name VERSION) file=$(name FILE)
mkdir -p build/installers/files
curl -fsSL --retry 3 -o "build/installers/files/$file" "https://www.python.org/ftp/python/$version/$file"
make installers ARGS=windows
(cd dist && sha256sum -- *-setup.exe | tee SHA256SUMS)
