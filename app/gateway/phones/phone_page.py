"""The files of the web chat, and the headers that make a browser keep everything else out of the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from aiohttp import web

from app.machine.paths import phone_page_folder

PREFIX = "/chat/"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
    ".txt": "text/plain; charset=utf-8",
}
INDEX = "index.html"
# Nothing is loaded from elsewhere, no script stands in a page, and the answer's HTML passes one sanitizer.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types dompurify"
)
SAFE_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page, ready to be sent."""

    content: bytes
    content_type: str


@cache
def page_files() -> Mapping[str, PageFile]:
    """Return the files of the page by name.

    They are read only once, and no file outside their folder is ever served.
    """
    return {
        file.name: PageFile(file.read_bytes(), TYPES[file.suffix])
        for file in sorted(phone_page_folder().iterdir())
        if file.suffix in TYPES
    }


async def send_file(request: web.Request) -> web.Response:
    """Return a file of the page. Raises HTTPNotFound."""
    file = page_files().get(request.match_info.get("name", "") or INDEX)
    if file is None:
        raise web.HTTPNotFound
    return web.Response(body=file.content, headers={"Content-Type": file.content_type})


async def add_safe_headers(request: web.Request, answer: web.StreamResponse) -> None:
    """Add the headers to every answer below /chat/, including errors and streams."""
    if is_below_page(request.path):
        answer.headers.update(SAFE_HEADERS)


def is_below_page(path: str) -> bool:
    return path == PREFIX.removesuffix("/") or path.startswith(PREFIX)
