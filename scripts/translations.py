"""`make translations` collects the window's texts for translators in resources/gui/translations.

Qt's lupdate does not follow helper functions such as `_tr("…")`. The texts are therefore found in the syntax tree
and written to a file that lupdate can parse.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

PROJECT = Path(__file__).resolve().parent.parent
WINDOW = PROJECT / "app" / "gui"
FOLDER = PROJECT / "resources" / "gui" / "translations"
LANGUAGES = ("en", "de")  # English only for its plurals
NAME = "poolhouse_{}.ts"
TRANSLATORS = ("translate", "QT_TRANSLATE_NOOP")
LONGER = 0.4
ACCENTS = str.maketrans("aeiouncAEIOU", "áéíóúñçÁÉÍÓÚ")


@dataclass(frozen=True, slots=True, order=True)
class Said:
    """A text of the window, with its translation context."""

    context: str
    text: str
    comment: str = ""
    plural: bool = False


class Unclear(Exception):
    """Raised for a text that cannot be collected, because it is not a literal where it is translated."""


def everything(root: Path = WINDOW) -> list[Said]:
    """Return all texts of the window. Raises Unclear."""
    texts: set[Said] = set()
    for file in sorted(root.rglob("*.py")):
        texts |= set(said_in(file.read_text(encoding="utf-8"), str(file.relative_to(root))))
    return sorted(texts)


def said_in(source: str, name: str) -> Iterator[Said]:
    """Yield the texts of a file. Raises Unclear."""
    tree = ast.parse(source)
    helpers = dict(_helpers(tree))
    inside = {id(node) for helper in helpers.values() for node in ast.walk(helper[1])}
    for place, call in _calls(tree, Place(name)):
        if id(call) not in inside:
            yield from _said(call, place, helpers)


@dataclass(frozen=True, slots=True)
class Place:
    """The file, class and function that contain a call."""

    file: str
    of_class: str = ""
    function: ast.FunctionDef | None = None

    def unclear(self, node: ast.expr, why: str) -> Unclear:
        return Unclear(f"{self.file}:{node.lineno}: {ast.unparse(node)[:60]} {why}")

    def kind_of(self, name: str) -> str:
        """Return the class in the annotation of the parameter `name` of the function."""
        arguments = self.function.args.args if self.function else []
        for argument in arguments:
            if argument.arg == name and isinstance(argument.annotation, ast.Name):
                return argument.annotation.id
        return ""

    def values(self, name: str) -> list[ast.expr]:
        """Return the values assigned to the local variable `name`."""
        return [
            node.value
            for node in ast.walk(self.function or ast.Module([], []))
            if isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
        ]


def _helpers(tree: ast.Module) -> Iterator[tuple[str, tuple[str, ast.FunctionDef]]]:
    """Yield the name, translation context and definition of each function that only translates its argument."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or not node.args.args:
            continue
        arguments = {argument.arg for argument in node.args.args}
        for call in ast.walk(node):
            match call:
                case ast.Call(args=[ast.Constant(value=str(context)), ast.Name(id=text), *_]) if (
                    _called(call) == "translate" and text in arguments
                ):
                    yield node.name, (context, node)


def _calls(node: ast.AST, place: Place) -> Iterator[tuple[Place, ast.Call]]:
    """Yield all calls below a node, each with its place."""
    for child in ast.iter_child_nodes(node):
        inner = place
        if isinstance(child, ast.ClassDef):
            inner = Place(place.file, child.name)
        elif isinstance(child, ast.FunctionDef):
            inner = Place(place.file, place.of_class, child)
        elif isinstance(child, ast.Call):
            yield place, child
        yield from _calls(child, inner)


def _said(call: ast.Call, place: Place, helpers: dict[str, tuple[str, ast.FunctionDef]]) -> Iterator[Said]:
    called, args = _called(call), list(call.args)
    if called in TRANSLATORS:
        if called == "translate" and len(args) > 1 and _is_shown_later(args[1]):
            return  # the text was collected where QT_TRANSLATE_NOOP names it
        context = _text(args.pop(0), place)
    elif called in helpers:
        context = helpers[called][0]
    elif called == "tr":
        context = _context(call, place)
    else:
        return
    comment = _text(args[1], place) if len(args) > 1 else ""
    plural = len(args) > 2 or any(keyword.arg == "n" for keyword in call.keywords)
    for text in _texts(args[0], place):
        yield Said(context, text, comment, plural)


def _context(call: ast.Call, place: Place) -> str:
    """Return the translation context: the class for `self.tr`, the annotated class of the parameter for `page.tr`."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="self")) if place.of_class:
            return place.of_class
        case ast.Attribute(value=ast.Name(id=name)) if kind := place.kind_of(name):
            return kind
    raise place.unclear(call, "is of no known class")


def _is_shown_later(text: ast.expr) -> bool:
    return isinstance(text, ast.Call | ast.Attribute)


def _texts(node: ast.expr, place: Place) -> list[str]:
    """Return the literal, both of `"a" if … else "b"`, or all values assigned to a variable."""
    if isinstance(node, ast.IfExp):
        return [*_texts(node.body, place), *_texts(node.orelse, place)]
    if isinstance(node, ast.Name) and (values := place.values(node.id)):
        return [text for value in values for text in _texts(value, place)]
    return [_text(node, place)]


def _text(node: ast.expr, place: Place) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
    raise place.unclear(node, "is not written out here")


def _called(call: ast.Call) -> str:
    """Return `tr`, `translate` or the name of a function. `tr = QCoreApplication.translate` counts as `translate`."""
    match call.func:
        case ast.Name(id="tr"):
            return "translate"
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr="translate", value=ast.Name(id="QCoreApplication")):
            return "translate"
        case ast.Attribute(attr=name) if name != "translate":  # QPainter has a `translate` as well
            return name
    return ""


def listing(said: list[Said]) -> str:
    """Return the texts as Python code that lupdate can parse."""
    lines: list[str] = []
    for context in dict.fromkeys(text.context for text in said):
        lines += [f"class {context}:", "    def said(self, n):"]
        for text in said:
            if text.context == context:
                rest = f", {_quoted(text.comment)}, n" if text.plural else ""
                if text.comment and not text.plural:
                    rest = f", {_quoted(text.comment)}"
                lines.append(f"        self.tr({_quoted(text.text)}{rest})")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def update(folder: Path = FOLDER) -> list[str]:
    """Update the .ts files and compile them to .qm files. Return the texts that are not translated yet."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / NAME.format(language) for language in LANGUAGES]
    for language, file in zip(LANGUAGES, files, strict=True):
        _collect(file, language)
    if _fill_english(files[0]):
        _collect(files[0], LANGUAGES[0])  # in lupdate's own layout
    for file in files:
        release(file, file.with_suffix(".qm"))
    return [f"{file.name}: {text}" for file in files for text in unfinished(file)]


def _collect(file: Path, language: str) -> None:
    more = ["-pluralonly"] if language == "en" else []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "window.py"
        source.write_text(listing(everything()), encoding="utf-8")
        _tool(
            "lupdate", str(source), "-ts", str(file), "-no-obsolete", "-locations", "none",
            "-source-language", "en", "-target-language", language, *more,
        )  # fmt: skip


def release(file: Path, made: Path) -> None:
    """Compile a .ts file to a .qm file."""
    _tool("lrelease", str(file), "-qm", str(made))


def _tool(name: str, *words: str) -> None:
    """Run one of the Qt tools that PySide6 includes."""
    program = Path(sys.executable).parent / f"pyside6-{name}"
    ran = subprocess.run([str(program), *words], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise SystemExit(f"{name} failed:\n{ran.stdout}{ran.stderr}")


def unfinished(file: Path) -> list[str]:
    """Return the texts that lack a translation in this language."""
    tree = ET.parse(file)  # noqa: S314  our own file
    return [
        str(message.findtext("source"))
        for message in tree.iter("message")
        if (translation := message.find("translation")) is not None and translation.get("type") == "unfinished"
    ]


def _fill_english(file: Path) -> bool:
    """Fill in the English plurals, such as `%n machine` and `%n machines` for `%n machine(s)`.

    Return whether any were new.
    """
    tree = ET.parse(file)  # noqa: S314  our own file
    new = False
    for message in tree.iter("message"):
        translation, source = message.find("translation"), str(message.findtext("source"))
        if translation is None or translation.get("type") != "unfinished":
            continue
        for form, several in zip(translation.findall("numerusform"), (False, True), strict=True):
            form.text = english(source, several).replace("%n", "%Ln")  # with the language's own digits and separators
        del translation.attrib["type"]
        new = True
    if new:
        _write(tree, file)
    return new


def english(text: str, several: bool) -> str:
    """Return the English singular or plural, such as `%n machine` or `%n machines` for `%n machine(s)`."""

    def ended(match: re.Match[str]) -> str:
        word = match[1]
        if not several:
            return word
        if re.search(r"[^aeiou]y$", word):
            return f"{word[:-1]}ies"
        return f"{word}es" if re.search(r"(s|x|ch|sh)$", word) else f"{word}s"

    return re.sub(r"(\w+)\(s\)", ended, text)


def pseudo(made: Path) -> None:
    """Create a pseudo-language that is accented and 40 % longer.

    Text that is cut off in it may be cut off in German, too.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pseudo.ts"
        _collect(file, "de")
        tree = ET.parse(file)  # noqa: S314  our own file
        for message in tree.iter("message"):
            translation, text = message.find("translation"), longer(str(message.findtext("source")))
            assert translation is not None
            translation.attrib.pop("type", None)
            forms = translation.findall("numerusform")
            for form in forms:
                form.text = text
            if not forms:
                translation.text = text
        _write(tree, file)
        release(file, made)


def longer(text: str) -> str:
    """Return the text with accents, except in {placeholders}, and with a suffix that makes it 40 % longer."""
    parts = re.split(r"(\{[^}]*\}|%n|&\w+;|\*\.\w+)", text)
    accented = [part if at % 2 else part.translate(ACCENTS) for at, part in enumerate(parts)]
    tail = "~" * max(1, round(LONGER * len(text)) - 1)  # a space precedes it
    words = [tail[at : at + 6] for at in range(0, len(tail), 6)]
    return "".join(accented) + " " + " ".join(words)


def _write(tree: ET.ElementTree[ET.Element], file: Path) -> None:
    content = ET.tostring(tree.getroot(), encoding="unicode")
    head = '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE TS>\n'
    file.write_text(head + content + "\n", encoding="utf-8")


def main() -> int:
    """Update all languages, and report missing translations."""
    try:
        missing = update()
    except Unclear as error:
        print(error)
        return 1
    print(f"{len(everything())} texts; {len(missing)} not translated yet")
    for line in missing:
        print(f"  {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
