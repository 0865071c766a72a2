"""The Debian package, for Debian 12 and 13 and Ubuntu 24.04."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

from app.core.reasons import size
from app.machine.versions.tree_hash import tree_bytes
from installers.linux import desktop, notices, running_copies
from installers.linux.system_libraries import least_glibc, needed_packages, programs_and_libraries
from installers.payload.payload import LICENSES, SBOM, Payload
from installers.payload.places import PROJECT, RESULTS, WORK
from installers.payload.trees import normalize, tool
from scripts.setup_errors import Trouble, check_disk

FOLDER = "usr/lib/poolhouse"
RESTART = "/run/poolhouse/restart.json"
CONTROL = """Package: poolhouse
Version: {version}
Architecture: amd64
Maintainer: The Poolhouse authors <authors@poolhouse.invalid>
Installed-Size: {kib}
Depends: {depends}
Recommends: fonts-dejavu-core | fonts-dejavu | fonts-noto-core, xdg-utils
Suggests: gnome-shell-extension-appindicator, gnome-keyring | kwalletmanager
Section: utils
Priority: optional
Description: {summary}
{description}
"""
# A package of an older version would meet data that it cannot read. dpkg asks the installed version first, and the new
# one if that fails, so both refuse.
REFUSE = """refuse_downgrade() {
    echo "Poolhouse $1 is installed, which is newer than $2, so nothing was changed; remove it first to use $2." >&2
    exit 1
}
"""
PREINST = (
    """#!/bin/sh
set -e
"""
    + REFUSE
    + """
if [ "$1" = upgrade ] && dpkg --compare-versions "$2" gt "{version}"; then
    refuse_downgrade "$2" "{version}"
fi
"""
)
PRERM = (
    """#!/bin/sh
set -e
"""
    + REFUSE
    + """
case "$1" in
    upgrade)
        if dpkg --compare-versions "$2" lt "{version}"; then refuse_downgrade "{version}" "$2"; fi
        {python} {running} stop {restart} || true ;;
    failed-upgrade)
        if dpkg --compare-versions "$2" gt "{version}"; then refuse_downgrade "$2" "{version}"; fi ;;
    remove | deconfigure)
        {python} {running} stop /run/poolhouse/stopped.json || true
        rm -rf /run/poolhouse ;;
esac
"""
)
POSTINST = """#!/bin/sh
set -e
case "$1" in
    configure | abort-upgrade | abort-remove)
        if [ -e {restart} ]; then
            {python} {running} start {restart} || true
            rm -rf /run/poolhouse
        fi ;;
esac
"""
OVERRIDES = """\
# Debian 12's dpkg and Ubuntu's unpack zstd, several times as fast as xz; Debian's archive does not take it.
poolhouse: malformed-deb-archive
# Qt, Python, the engine and the Python packages are shipped as they were built and tested together: the versions of
# Debian differ, and a household's computers must compute the same. They find each other by $ORIGIN.
poolhouse: embedded-library
poolhouse: custom-library-search-path
poolhouse: shared-library-lacks-prerequisites
poolhouse: library-not-linked-against-libc
poolhouse: unstripped-binary-or-object
poolhouse: hardening-no-pie
poolhouse: duplicate-font-file
# Modules that can also be run as programs; nothing here runs them so.
poolhouse: unusual-interpreter
poolhouse: package-installs-python-bytecode
poolhouse: package-installs-python-pycache-dir
# License texts and data of the Python packages, which their own metadata names.
poolhouse: extra-license-file
poolhouse: package-contains-documentation-outside-usr-share-doc
# No address of a team exists yet.
poolhouse: bogus-mail-host
poolhouse: initial-upload-closes-no-bugs
"""


def pack(payload: Payload) -> Path:
    """Write the package into dist/ and return its path. Raises Trouble."""
    check_disk(PROJECT)
    root = WORK / "deb"
    shutil.rmtree(root, ignore_errors=True)
    place = root / FOLDER
    place.parent.mkdir(parents=True)
    payload.write(place, "deb", "/usr/bin/poolhouse")
    shutil.copyfile(Path(running_copies.__file__), place / "running_copies.py")
    desktop.write_launcher(place / "bin" / "poolhouse", updates=False)
    share = root / "usr/share"
    (root / "usr/bin").mkdir()
    (root / "usr/bin/poolhouse").symlink_to("../lib/poolhouse/bin/poolhouse")
    _write(share / "applications/poolhouse.desktop", desktop.DESKTOP_ENTRY)
    _write(share / f"metainfo/{desktop.ID}.metainfo.xml", desktop.metainfo(payload.version, payload.time))
    _write(root / "usr/lib/systemd/user/poolhouse.service", desktop.UNIT)
    desktop.write_icons(share / "icons/hicolor")
    _compressed(share / "man/man1/poolhouse.1.gz", desktop.man_page(payload.version, payload.time))
    documents = share / "doc/poolhouse"
    _write(documents / "copyright", notices.debian_copyright(payload))
    _compressed(documents / "changelog.gz", notices.debian_changelog(payload))
    for name in (SBOM, LICENSES):
        (documents / name).symlink_to(f"../../../lib/poolhouse/{name}")
    _write(share / "lintian/overrides/poolhouse", OVERRIDES)
    normalize(root, payload.time)
    return _package(root, payload)


def scripts(version: str) -> dict[str, str]:
    """Return the scripts that dpkg runs, by name."""
    words = {
        "version": version,
        "python": f"/{FOLDER}/python/bin/python3.11",
        "running": f"/{FOLDER}/running_copies.py",
        "restart": RESTART,
    }
    filled = {"preinst": PREINST, "prerm": PRERM, "postinst": POSTINST}
    for key, value in words.items():
        filled = {name: script.replace("{" + key + "}", value) for name, script in filled.items()}
    return filled


def _package(root: Path, payload: Payload) -> Path:
    files = list(programs_and_libraries(root / FOLDER))
    depends = [f"libc6 (>= {least_glibc(files)})", "ca-certificates", *needed_packages(files)]
    control = root / "DEBIAN"
    control.mkdir()
    description = "\n .\n".join(" " + "\n ".join(_wrapped(text)) for text in desktop.PARAGRAPHS)
    kib = -(-tree_bytes(root) // 1024)
    text = CONTROL.format(
        version=payload.version, kib=kib, depends=", ".join(depends), summary=desktop.SUMMARY.lower(),
        description=description,
    )  # fmt: skip
    _write(control / "control", text)
    for name, script in scripts(payload.version).items():
        _write(control / name, script)
        (control / name).chmod(0o755)
    _write(control / "md5sums", _sums(root))
    normalize(root, payload.time)
    RESULTS.mkdir(exist_ok=True)
    result = RESULTS / f"poolhouse_{payload.version}_amd64.deb"
    part = result.with_suffix(".part")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(payload.time)}
    tool(
        "dpkg-deb", "--root-owner-group", "-Zzstd", "-z12", "--threads-max=2", "--build", str(root), str(part),
        label="Packing", env=environment,
    )  # fmt: skip
    if part.stat().st_size > LARGEST:
        raise Trouble(f"The package would be {size(part.stat().st_size)}, more than the {size(LARGEST)} allowed.")
    part.replace(result)
    shutil.rmtree(root)
    return result


LARGEST = 330_000_000


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _compressed(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def _sums(root: Path) -> str:
    """Return the checksums by which `dpkg --verify` notices changed files."""
    import hashlib

    lines = []
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink() and "DEBIAN" not in path.parts:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
            lines.append(f"{digest}  {path.relative_to(root).as_posix()}\n")
    return "".join(lines)


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 78)
