"""The folder Poolhouse.app: what macOS reads about the app, and where its layers lie."""

from __future__ import annotations

import plistlib
import shutil
from pathlib import Path
from typing import Any

from app.network.discovery.announcement import SERVICE
from installers.payload.places import PACKAGE_LAYERS

ID = "org.poolhouse.Poolhouse"
NAME = "Poolhouse"
OLDEST = "13.3"  # what the engine is compiled for
LAYERS = "Contents/Resources"
PYTHON_PATHS = "Contents/Resources/python/bin/python3.13._pth"
# All folders that Python imports from, seen from its program: nothing of the user's has any influence.
IMPORTED = ("../lib/python3.13", "../lib/python3.13/lib-dynload", *(f"../../{name}" for name in PACKAGE_LAYERS),
            "../../engine", "../../app")  # fmt: skip
LOCAL_NETWORK = {
    "en": "Poolhouse finds your other computers and computes with them over your local network.",
    "de": "Poolhouse findet Ihre anderen Computer und rechnet mit ihnen über Ihr lokales Netz.",
}
# The hardened runtime loads only code that the same person signed. Engine packs are built and installed apart from the
# app, and workers load them, so this one protection is given up. Nothing else is asked for.
ENTITLEMENTS = {"com.apple.security.cs.disable-library-validation": True}


def info(version: str, seconds: int) -> dict[str, Any]:
    """Return the content of Info.plist. seconds: the time of the commit, which numbers the build."""
    return {
        "CFBundleDevelopmentRegion": "en",
        "CFBundleDisplayName": NAME,
        "CFBundleExecutable": NAME,
        "CFBundleIconFile": "poolhouse.icns",
        "CFBundleIdentifier": ID,
        "CFBundleInfoDictionaryVersion": "6.0",
        "CFBundleLocalizations": ["en", "de"],
        "CFBundleName": NAME,
        "CFBundlePackageType": "APPL",
        "CFBundleShortVersionString": version,
        "CFBundleSupportedPlatforms": ["MacOSX"],
        "CFBundleVersion": str(seconds // 60),
        "LSApplicationCategoryType": "public.app-category.productivity",
        "LSArchitecturePriority": ["arm64"],
        "LSMinimumSystemVersion": OLDEST,
        "NSBonjourServices": [SERVICE.removesuffix(".local.")],
        "NSHighResolutionCapable": True,
        "NSLocalNetworkUsageDescription": LOCAL_NETWORK["en"],
        "NSPrincipalClass": "NSApplication",
    }


def write(bundle: Path, version: str, seconds: int, icon: bytes) -> None:
    """Write a bundle without its layers and without its program, which a Mac compiles."""
    shutil.rmtree(bundle, ignore_errors=True)
    contents = bundle / "Contents"
    (contents / "MacOS").mkdir(parents=True)
    resources = bundle / LAYERS
    resources.mkdir()
    (contents / "Info.plist").write_bytes(plistlib.dumps(info(version, seconds)))
    (contents / "PkgInfo").write_bytes(b"APPL????")
    (resources / "poolhouse.icns").write_bytes(icon)
    for language, words in LOCAL_NETWORK.items():
        strings = resources / f"{language}.lproj" / "InfoPlist.strings"
        strings.parent.mkdir()
        strings.write_text(f'"NSLocalNetworkUsageDescription" = "{words}";\n', "utf-8")
    paths = bundle / PYTHON_PATHS
    paths.parent.mkdir(parents=True)
    paths.write_text("".join(f"{path}\n" for path in IMPORTED), "utf-8")


def entitlements() -> bytes:
    """Return the entitlements that the signature contains."""
    return plistlib.dumps(ENTITLEMENTS)
