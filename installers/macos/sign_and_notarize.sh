#!/usr/bin/env bash
# Signs Poolhouse.app and its disk image and has Apple notarize them. What a person does once before is in
# docs/installers.md. No secret is in this file: the key is in the keychain, the password in a profile of notarytool.
#   POOLHOUSE_IDENTITY="Developer ID Application: NAME (TEAM)" POOLHOUSE_PROFILE=poolhouse \
#     bash dist/macos/sign_and_notarize.sh
# NOT VERIFIED: nobody has run this yet.
set -euo pipefail
: "${POOLHOUSE_IDENTITY:?the name of the certificate, as 'security find-identity -v -p codesigning' shows it}"
: "${POOLHOUSE_PROFILE:?the name that 'xcrun notarytool store-credentials' was given}"
here=$(cd "$(dirname "$0")" && pwd)
app=$here/Poolhouse.app
sign() { codesign --force --timestamp --options runtime --sign "$POOLHOUSE_IDENTITY" "$@"; }

# From the inside to the outside: each signature covers the ones within.
find "$app/Contents/Resources" -type f \( -name '*.dylib' -o -name '*.so' \) -print0 |
  while IFS= read -r -d '' file; do sign "$file"; done
find "$app/Contents/Resources" -type d -name '*.framework' -prune -print0 |
  while IFS= read -r -d '' folder; do sign "$folder"; done
sign --entitlements "$here/entitlements.plist" "$app/Contents/Resources/python/bin/python3.13"
sign --entitlements "$here/entitlements.plist" "$app"
codesign --verify --deep --strict --verbose=2 "$app"

image=$(bash "$here/make_dmg.sh")
sign "$image"
xcrun notarytool submit "$image" --keychain-profile "$POOLHOUSE_PROFILE" --wait
xcrun stapler staple "$image"
spctl --assess --type open --context context:primary-signature --verbose "$image"
shasum -a 256 "$image"
