#!/usr/bin/env bash
# Adds to dist/macos/Poolhouse.app what only a Mac can make: its program, the engine, and Python.
#   bash dist/macos/finish_on_mac.sh PYTHON SHA256
# PYTHON: the file cpython-3.13.*-aarch64-apple-darwin-install_only_stripped.tar.gz of python-build-standalone.
# SHA256: its hash as published there, compared by a person; it is written into installed.json.
# NOT VERIFIED: nobody has run this yet. Needs Xcode's command line tools, and `make setup` in the checkout.
set -euo pipefail
python=${1:?the archive with Python} sha256=${2:?its SHA-256}
here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "$here/../.." && pwd)
resources=$here/Poolhouse.app/Contents/Resources

echo "$sha256  $python" | shasum -a 256 --check --status || { echo "$python has another hash." >&2; exit 1; }
paths=$(cat "$resources/python/bin/python3.13._pth")
rm -rf "$resources/python"
tar -xzf "$python" -C "$resources"
rm -rf "$resources/python/share" "$resources/python/include" "$resources/python/lib/python3.13/test"
printf '%s\n' "$paths" >"$resources/python/bin/python3.13._pth"

xcrun clang -O2 -Wall -Wextra -arch arm64 -mmacosx-version-min=13.3 -o "$here/Poolhouse.app/Contents/MacOS/Poolhouse" \
  "$here/launcher.c"

# The engine of the checkout, without RPC, as it ships.
(cd "$checkout" && python3 -m scripts.setup --release)
rm -rf "$resources/engine"
mkdir -p "$resources/engine"
cp -R "$checkout"/.venv/lib/python3.*/site-packages/llama_cpp "$checkout"/.venv/lib/python3.*/site-packages/llama_cpp_python-*.dist-info \
  "$resources/engine"

for layer in app qt numpy libraries engine; do
  "$resources/python/bin/python3.13" -m compileall -q -j 0 --invalidation-mode unchecked-hash -s "$resources" "$resources/$layer"
done
"$resources/python/bin/python3.13" - "$resources/installed.json" "$sha256" <<'PYTHON'
import json, sys
place, sha256 = sys.argv[1:]
facts = json.load(open(place))
facts["layers"]["python"] = sha256
json.dump(facts, open(place, "w"), indent=1)
PYTHON
"$here/Poolhouse.app/Contents/MacOS/Poolhouse" --version
echo "Poolhouse.app is complete. Next: sign_and_notarize.sh, or make_dmg.sh for an unsigned image."
