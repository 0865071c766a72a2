#!/usr/bin/env bash
# Packs dist/macos/Poolhouse.app into a disk image with a link to the Applications folder:
#   bash dist/macos/make_dmg.sh
# NOT VERIFIED: nobody has run this yet.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
app=$here/Poolhouse.app
[ -x "$app/Contents/MacOS/Poolhouse" ] || { echo "Run finish_on_mac.sh first." >&2; exit 1; }
version=$(plutil -extract CFBundleShortVersionString raw "$app/Contents/Info.plist")
image=$here/../Poolhouse-$version-arm64.dmg

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ditto "$app" "$folder/Poolhouse.app"
ln -s /Applications "$folder/Applications"
rm -f "$image"
hdiutil create -volname Poolhouse -srcfolder "$folder" -fs HFS+ -format ULFO -quiet "$image"
echo "$image"
