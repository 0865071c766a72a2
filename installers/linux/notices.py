"""The copyright file and the changelog of the Debian package."""

from __future__ import annotations

import time
from email.utils import formatdate

from installers.payload.payload import Payload

HEAD = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Poolhouse
Comment:
 Poolhouse is shipped with a Python interpreter, Qt, the engine llama.cpp and the
 Python packages that it needs. Their license texts lie beside them: of the Python
 packages in usr/lib/poolhouse/{qt,numpy,libraries}/*.dist-info, of Python and its
 libraries in usr/lib/poolhouse/python/licenses, of the model in
 usr/lib/poolhouse/models.

Files: *
Copyright: The Poolhouse authors
License: Apache-2.0

Files: usr/lib/poolhouse/python/*
Copyright: 1991-2023 Python Software Foundation and others
License: PSF-2
 See usr/lib/poolhouse/python/licenses.

Files: usr/lib/poolhouse/qt/*
Copyright: The Qt Company Ltd. and other contributors
License: LGPL-3
 On Debian systems, the text is in /usr/share/common-licenses/LGPL-3. The libraries
 are unchanged, separate files that you can replace. Source: code.qt.io

Files: usr/lib/poolhouse/libraries/zeroconf/*
Copyright: Paul Scott-Murphy, William McBrine and others
License: LGPL-2.1+
 On Debian systems, the text is in /usr/share/common-licenses/LGPL-2.1.

Files: usr/lib/poolhouse/engine/*
Copyright: 2023-2026 The ggml authors
 2023 Andrei Betlen
License: Expat
 See usr/lib/poolhouse/engine/*.dist-info.

Files: usr/lib/poolhouse/models/SmolLM2*
Copyright: 2024 Hugging Face and contributors
License: Apache-2.0

License: Apache-2.0
 On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.
"""


def debian_copyright(_payload: Payload) -> str:
    """Return the copyright file."""
    return HEAD


def debian_changelog(payload: Payload) -> str:
    """Return the changelog of the package. What changed for users is told in CHANGELOG.md."""
    when = formatdate(payload.time)
    assert time.gmtime(payload.time).tm_year > 2000
    return (
        f"poolhouse ({payload.version}) stable; urgency=medium\n\n"
        f"  * Commit {payload.commit[:12]}. The settings list the changes for users.\n\n"
        f" -- The Poolhouse authors <authors@poolhouse.invalid>  {when}\n"
    )
