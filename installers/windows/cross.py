"""The cross compiler for Windows, MinGW-w64 with POSIX threads, and the flags that all of our programs need."""

from __future__ import annotations

from pathlib import Path

from installers.payload.trees import tool

PREFIX = "x86_64-w64-mingw32"
C, CPP = f"{PREFIX}-gcc-posix", f"{PREFIX}-g++-posix"
STRIP, OBJDUMP, RESOURCES = f"{PREFIX}-strip", f"{PREFIX}-objdump", f"{PREFIX}-windres"
LABEL = "Compiling for Windows"
# GCC's own libraries become part of each file: a library of the same name from another package, loaded first, would
# otherwise take their place.
STATIC = "-static -static-libgcc -static-libstdc++"
LINK = f"{STATIC} -Wl,--no-insert-timestamp -Wl,--exclude-libs,ALL"
# GCC keeps the stack of Windows aligned to 16 bytes only, and then uses moves that need 32 or 64 (its bug 54412): the
# assembler writes the moves that need none. They are as fast where the address is aligned.
ASSEMBLER = "-Wa,-muse-unaligned-vector-move"
# What every Windows has. Whatever else a file of ours names must lie beside it.
SYSTEM = frozenset({
    "advapi32.dll", "bcrypt.dll", "kernel32.dll", "msvcrt.dll", "ole32.dll", "propsys.dll", "shell32.dll",
    "user32.dll", "ws2_32.dll",
})  # fmt: skip


def compiler_version() -> str:
    """Return the line by which the compiler names itself. Raises Trouble."""
    return tool(CPP, "--version", label=LABEL).splitlines()[0]


def needed(path: Path) -> set[str]:
    """Return the names of the libraries that a file for Windows names, in lower case."""
    lines = tool(OBJDUMP, "-p", str(path), label="Reading a library").splitlines()
    return {line.partition("DLL Name:")[2].strip().lower() for line in lines if "DLL Name:" in line}
