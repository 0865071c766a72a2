#!/usr/bin/env bash
# Builds the unsigned Poolhouse.app and its disk image into dist/ on an Apple processor:
#   bash .ci/installers/macos.sh
# NOT VERIFIED: nobody has run this yet. Needs Xcode's command line tools; no secrets. A person signs the result with
# installers/macos/sign_and_notarize.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."

make setup
.venv/bin/python -m installers macos
bash dist/macos/make_dmg.sh
(cd dist && shasum -a 256 -- *.dmg | tee SHA256SUMS)
