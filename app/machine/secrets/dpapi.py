"""Windows' own encryption for a file only this user can read. Unverified until it ran there."""

from __future__ import annotations

import ctypes
import sys

CRYPTPROTECT_UI_FORBIDDEN = 0x1  # wincrypt.h: a service must never open a dialog


class _Blob(ctypes.Structure):
    _fields_ = (("size", ctypes.c_uint32), ("data", ctypes.c_void_p))


if sys.platform == "win32":

    def _call(function: str, content: bytes) -> bytes:
        buffer = ctypes.create_string_buffer(content, len(content))
        given = _Blob(len(content), ctypes.cast(buffer, ctypes.c_void_p))
        made = _Blob()
        call = getattr(ctypes.WinDLL("crypt32", use_last_error=True), function)
        flags = CRYPTPROTECT_UI_FORBIDDEN
        if not call(ctypes.byref(given), None, None, None, None, flags, ctypes.byref(made)):
            raise ctypes.WinError(ctypes.get_last_error())
        try:
            return ctypes.string_at(made.data or 0, made.size)
        finally:
            free = ctypes.WinDLL("kernel32").LocalFree
            free.argtypes = [ctypes.c_void_p]
            free(made.data)

else:

    def _call(function: str, content: bytes) -> bytes:
        del function
        return content


def protect(plain: bytes) -> bytes:
    """Bytes that only this Windows user can turn back; elsewhere the bytes themselves."""
    return _call("CryptProtectData", plain)


def unprotect(protected: bytes) -> bytes:
    """The bytes given to `protect`. Raises OSError when they are another user's."""
    return _call("CryptUnprotectData", protected)
