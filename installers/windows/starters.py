"""The programs that a person starts on Windows, with icon, version and manifest: Poolhouse.exe, bin\\poolhouse.exe."""

from __future__ import annotations

import struct
from pathlib import Path

from installers.linux.desktop import write_icons
from installers.payload.trees import tool
from installers.windows import cross

SOURCES = tuple(Path(__file__).with_name(name) for name in ("launcher.c", "switch.c"))
WINDOW, CONSOLE = "Poolhouse.exe", "bin/poolhouse.exe"
ICON_SIZES = (16, 24, 32, 48, 64, 128, 256)
# Sharp at every scale, UTF-8 as the code page, and paths longer than 260 signs where the user's Windows allows them.
MANIFEST = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<assembly xmlns="urn:schemas-microsoft-com:asm.v1" manifestVersion="1.0">
  <assemblyIdentity type="win32" name="Poolhouse.Poolhouse" version="{four}" processorArchitecture="amd64"/>
  <trustInfo xmlns="urn:schemas-microsoft-com:asm.v3"><security><requestedPrivileges>
    <requestedExecutionLevel level="asInvoker" uiAccess="false"/>
  </requestedPrivileges></security></trustInfo>
  <compatibility xmlns="urn:schemas-microsoft-com:compatibility.v1"><application>
    <supportedOS Id="{{8e0f7a12-bfb3-4fe8-b9a5-48fd50a15a9a}}"/>
  </application></compatibility>
  <application xmlns="urn:schemas-microsoft-com:asm.v3"><windowsSettings>
    <dpiAwareness xmlns="http://schemas.microsoft.com/SMI/2016/WindowsSettings">PerMonitorV2</dpiAwareness>
    <activeCodePage xmlns="http://schemas.microsoft.com/SMI/2019/WindowsSettings">UTF-8</activeCodePage>
    <longPathAware xmlns="http://schemas.microsoft.com/SMI/2016/WindowsSettings">true</longPathAware>
  </windowsSettings></application>
</assembly>
"""
RESOURCES = """#include <windows.h>
1 ICON "poolhouse.ico"
1 RT_MANIFEST "poolhouse.manifest"
1 VERSIONINFO
FILEVERSION {commas}
PRODUCTVERSION {commas}
FILEOS VOS_NT_WINDOWS32
FILETYPE VFT_APP
BEGIN
  BLOCK "StringFileInfo"
  BEGIN
    BLOCK "000004B0"
    BEGIN
      VALUE "CompanyName", "The Poolhouse authors"
      VALUE "FileDescription", "Poolhouse"
      VALUE "FileVersion", "{version}"
      VALUE "LegalCopyright", "The Poolhouse authors. Apache License 2.0."
      VALUE "OriginalFilename", "{name}"
      VALUE "ProductName", "Poolhouse"
      VALUE "ProductVersion", "{version}"
    END
  END
  BLOCK "VarFileInfo"
  BEGIN
    VALUE "Translation", 0, 1200
  END
END
"""
FLAGS = ("-Os", "-s", "-Wall", "-Wextra", "-Werror", "-municode", "-finput-charset=UTF-8", "-D_WIN32_WINNT=0x0A00",
         "-DUNICODE", *cross.LINK.split(), "-Wl,--build-id=none", "-Wl,--dynamicbase", "-Wl,--nxcompat",
         "-Wl,--high-entropy-va")  # fmt: skip
LIBRARIES = ("-lole32", "-luuid", "-lshell32", "-lshlwapi")


def four_numbers(version: str) -> str:
    """Return a version as Windows counts it, such as 1.2.3.0."""
    return ".".join([*version.split("."), "0", "0", "0"][:4])


def write(folder: Path, scratch: Path, version: str) -> Path:
    """Write both programs into the installed folder, and return the path of the icon. Raises Trouble."""
    icon = scratch / "poolhouse.ico"
    icon.write_bytes(icon_file(scratch / "icons"))
    (folder / "bin").mkdir()
    four = four_numbers(version)
    (scratch / "poolhouse.manifest").write_text(MANIFEST.format(four=four), "utf-8")
    for name, kind in ((WINDOW, ("-mwindows",)), (CONSOLE, ("-mconsole", "-DCONSOLE"))):
        script, resources = scratch / "poolhouse.rc", scratch / "poolhouse.res"
        words = {"commas": four.replace(".", ","), "version": version, "name": Path(name).name}
        script.write_text(RESOURCES.format(**words), "utf-8")
        tool(cross.RESOURCES, script.name, "-O", "coff", "-o", resources.name, label=cross.LABEL, cwd=scratch)
        out = str((folder / name).absolute())
        tool(
            cross.C, *FLAGS, *kind, "-o", out, *(source.name for source in SOURCES), str(resources.absolute()),
            *LIBRARIES, label=cross.LABEL, cwd=SOURCES[0].parent,
        )  # fmt: skip
    return icon


def icon_file(scratch: Path) -> bytes:
    """Return the icon in all sizes, as pictures in PNG's format (since Windows Vista). Raises Trouble."""
    write_icons(scratch)
    pictures = [(size, (scratch / f"{size}x{size}/apps/poolhouse.png").read_bytes()) for size in ICON_SIZES]
    head = struct.pack("<HHH", 0, 1, len(pictures))
    offset = len(head) + 16 * len(pictures)
    entries = b""
    for size, picture in pictures:
        entries += struct.pack("<BBBBHHII", size % 256, size % 256, 0, 0, 1, 32, len(picture), offset)
        offset += len(picture)
    return head + entries + b"".join(picture for _, picture in pictures)
