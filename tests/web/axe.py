"""The accessibility checks of axe-core, which Lighthouse also uses. npm fetches it once, outside the repository."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.web.phone_browser import PhoneBrowser

VERSION = "4.14.1"
SHA512 = (
    "1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b73"
    "4f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5"
)
FETCH_SECONDS = 120
RUN = """
const [done] = arguments;
axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
  .then(({ violations }) => done(violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary }) => [id, help, target.join(" "), failureSummary]))));
"""


@cache
def axe_source() -> str:
    """Return the script, or skip the test where npm is missing or cannot fetch it. The archive's hash is checked."""
    cache_folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "poolhouse-tests"
    archive = cache_folder / f"axe-core-{VERSION}.tgz"
    if not archive.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("npm, which fetches axe-core for this test, is not installed here")
        cache_folder.mkdir(parents=True, exist_ok=True)
        fetch = [
            npm,
            "pack",
            f"axe-core@{VERSION}",
            "--silent",
            "--ignore-scripts",
            "--pack-destination",
            str(cache_folder),
        ]
        fetched = subprocess.run(fetch, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
        if fetched.returncode:
            pytest.skip(f"npm could not fetch axe-core: {fetched.stderr.strip()[-200:]}")
    assert hashlib.sha512(archive.read_bytes()).hexdigest() == SHA512, f"{archive} is not the known archive"
    with tarfile.open(archive) as files:
        script = files.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()


def barriers(page: PhoneBrowser) -> list[Any]:
    """Return what axe-core finds on the page as it is now, in both palettes."""
    entries = []
    for palette in ("light", "dark"):
        page.use_palette(palette)
        page.js(axe_source())
        entries += [[palette, *barrier] for barrier in page.driver.execute_async_script(RUN)]
    page.use_palette("light")
    return entries
