"""`python -m scripts.architecture` generates the drawing and the table of docs/architecture.md from the code."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from xml.sax.saxutils import escape

PROJECT = Path(__file__).resolve().parent.parent
PAGE = PROJECT / "docs" / "architecture.md"
DRAWING = PAGE.with_suffix(".svg")
ROOTS = ("app", "backends")
BEGIN, END = "<!-- rooms: written by python -m scripts.architecture -->", "<!-- end of rooms -->"

Graph = dict[str, set[str]]


@dataclass(frozen=True, slots=True)
class Room:
    """A package: the files directly in it, and the packages that they import."""

    path: str  # such as app/node/placement
    duty: str  # the first line of its docstring
    n_files: int
    imports: tuple[str, ...]  # named as in the table


# The structure of the code


@cache
def modules() -> dict[str, Path]:
    """Return the files of the app and its engines, keyed by module name."""
    files = (file for root in ROOTS for file in (PROJECT / root).rglob("*.py"))
    named = {".".join(file.relative_to(PROJECT).with_suffix("").parts): file for file in files}
    return {name.removesuffix(".__init__"): named[name] for name in sorted(named)}


@cache
def imports() -> Graph:
    """Return the modules imported by each module, including imports within functions and for type checking."""
    known = modules()
    return {
        name: {imported for imported in _imported(file) if imported in known} - {name} for name, file in known.items()
    }


def _imported(file: Path) -> Iterator[str]:
    """Yield the modules that a file imports. In `from a import b`, that is `a.b` if it is a module, or else `a`."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            inside = [name for name in whole if name in modules()]
            yield from inside
            if len(inside) < len(whole):
                yield node.module


def top(module: str) -> str:
    """Return the box of the drawing to which a module belongs, such as `node`, `client.py` or `backends`.

    Returns "" for a module that is not drawn.
    """
    first, *rest = module.split(".")
    if first != "app":
        return first
    if not rest or rest[0] == "__main__":
        return ""  # the version, and the module that starts the command line
    file = modules()[f"app.{rest[0]}"]
    return rest[0] if file.name == "__init__.py" else file.name


def boxes() -> Graph:
    """Return the boxes that each box of the drawing imports."""
    graph: Graph = defaultdict(set)
    for name, targets in imports().items():
        if box := top(name):
            graph[box] |= {top(target) for target in targets} - {box, ""}
    return dict(graph)


def packages() -> list[str]:
    """Return the names of all packages in alphabetical order."""
    return [name for name, file in modules().items() if file.name == "__init__.py"]


def rooms() -> list[Room]:
    """Return all packages. Each one precedes its subpackages."""
    known = set(packages())
    files: dict[str, list[str]] = defaultdict(list)
    for name in modules():
        files[name if name in known else name.rpartition(".")[0]].append(name)
    return [_room(package, files[package], known) for package in sorted(known)]


def _room(package: str, files: Collection[str], known: Collection[str]) -> Room:
    docstring = ast.get_docstring(ast.parse(modules()[package].read_text("utf-8"))) or ""
    names = set()
    for file in files:
        for target in imports()[file]:
            room = target if target in known else target.rpartition(".")[0]
            if room != package and top(target):
                names.add(_short(room) if top(target) == top(package) else top(target))
    return Room(
        package.replace(".", "/"),
        docstring.partition("\n")[0],
        len(files),
        tuple(sorted(names, key=lambda name: ("/" in name, name))),
    )


def _short(room: str) -> str:
    return room.removeprefix("app.").replace(".", "/")


# The drawing


def reached(graph: Mapping[str, Collection[str]]) -> Graph:
    """Return all boxes that can be reached from each box."""
    reachable: Graph = {}
    for start in graph:
        seen, ahead = set[str](), list(graph[start])
        while ahead:
            if (node := ahead.pop()) not in seen:
                seen.add(node)
                ahead.extend(graph.get(node, ()))
        reachable[start] = seen
    return reachable


def arrows(graph: Mapping[str, Collection[str]]) -> list[tuple[str, str]]:
    """Return the imports to draw. An import of `c` by `a` is omitted if it follows from `a` to `b` and `b` to `c`."""
    far = reached(graph)

    def circle(a: str, b: str) -> bool:
        return a == b or (b in far[a] and a in far[b])

    return sorted(
        (a, b)
        for a in graph
        for b in graph[a]
        if circle(a, b)
        or not any(b in far[between] and not circle(a, between) and not circle(between, b) for between in graph[a])
    )


def floors(graph: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Return the floor of each box, counted from the top.

    A box is below all boxes that import it. Boxes that import each other in a cycle share a floor.
    """
    far = reached(graph)
    floor_of: dict[str, int] = {}

    def floor(box: str) -> int:
        if box not in floor_of:
            circle = {box} | {other for other in far[box] if box in far[other]}
            above = {other for other in graph if far[other] & circle} - circle
            floor_of.update(dict.fromkeys(circle, max((floor(other) + 1 for other in above), default=0)))
        return floor_of[box]

    return {box: floor(box) for box in sorted(graph)}


BOX_WIDTH, LANE_WIDTH, GAP, FLOOR_GAP, MARGIN = 184, 24, 22, 46, 20
LINE, TITLE, MOST_CHARACTERS = 15, 34, 29  # heights of text, and the characters that fit into a line of a box
STYLE = """text { font-family: system-ui, sans-serif; fill: #1d2a24 }
.name { font-size: 15px; font-weight: 600 } .rooms { font-size: 11px; fill: #4a5a52 }
rect { fill: #eef5f0; stroke: #14743a; stroke-width: 1.2 } .paper { fill: #ffffff; stroke: none }
path { fill: none; stroke: #5d6f66; stroke-width: 1.3 }"""

TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<polygon points="0,0.5 8,4 0,7.5" fill="#5d6f66"/></marker></defs>'
)


class Layout:
    """The positions of all boxes, and of the bends of all arrows.

    An arrow across several floors has a lane on each floor in between, so that it passes beside the boxes. Boxes
    and lanes are placed close to those that they are connected to; a few passes down and up determine the order on
    each floor.
    """

    def __init__(self, graph: Mapping[str, Collection[str]], lines: Mapping[str, int]) -> None:
        self.floor_of = floors(graph)
        self.ways = [self._way(a, b) for a, b in arrows(graph)]
        self._rows: list[list[str]] = [[] for _ in range(max(self.floor_of.values()) + 1)]
        for name in dict.fromkeys([*self.floor_of, *(bend for way in self.ways for bend in way)]):
            self._rows[self._floor(name)].append(name)
        self.x: dict[str, int] = {}
        self._place()
        ties: Graph = defaultdict(set)
        for way in self.ways:
            for a, b in pairwise(way):
                ties[a].add(b)
                ties[b].add(a)
        for _ in range(12):
            for row in (*self._rows, *reversed(self._rows)):
                row.sort(key=lambda box: (self._middle(ties[box] or {box}), box))
                self._place()
        self.height_of = [TITLE + LINE * max((lines.get(name, 0) for name in row), default=0) for row in self._rows]
        self.top_of = [MARGIN + sum(self.height_of[:floor]) + FLOOR_GAP * floor for floor in range(len(self._rows))]
        self.width = max(self._row_width(row) for row in self._rows) + 2 * MARGIN
        self.height = self.top_of[-1] + self.height_of[-1] + MARGIN

    def _way(self, a: str, b: str) -> list[str]:
        between = range(self.floor_of[a] + 1, self.floor_of[b])
        return [a, *(f"{a}>{b}@{floor}" for floor in between), b]

    def _floor(self, name: str) -> int:
        return int(name.rpartition("@")[2]) if "@" in name else self.floor_of[name]

    def _row_width(self, row: list[str]) -> int:
        return sum(_width(name) for name in row) + GAP * (len(row) - 1)

    def _place(self) -> None:
        widest = max(self._row_width(row) for row in self._rows)
        for row in self._rows:
            x = MARGIN + (widest - self._row_width(row)) // 2
            for name in row:
                self.x[name] = x + _width(name) // 2
                x += _width(name) + GAP

    def _middle(self, names: Collection[str]) -> float:
        return sum(self.x[name] for name in names) / len(names)

    def line(self, way: list[str]) -> str:
        """Return the SVG path of an arrow: down from floor to floor, or across if both ends share a floor."""
        a, b = way[0], way[-1]
        floor = self.floor_of[a]
        if floor == self.floor_of[b]:
            side = BOX_WIDTH // 2 if self.x[a] < self.x[b] else -(BOX_WIDTH // 2)
            y = self.top_of[floor] + TITLE // 2
            return f"M{self.x[a] + side},{y} L{self.x[b] - side},{y}"
        path = f"M{self.x[a]},{self.top_of[floor] + self.height_of[floor]}"
        x, y = self.x[a], self.top_of[floor] + self.height_of[floor]
        for name in way[1:]:
            row = self._floor(name)
            to_x, to_y = self.x[name], self.top_of[row]
            half = (y + to_y) // 2
            path += f" C{x},{half} {to_x},{half} {to_x},{to_y}"
            x, y = to_x, to_y
            if name != b:
                y += self.height_of[row]
                path += f" L{x},{y}"
        return path


def _width(name: str) -> int:
    return LANE_WIDTH if "@" in name else BOX_WIDTH


def drawing() -> str:
    """Return the drawing of the current code as SVG."""
    graph = boxes()
    inside: dict[str, list[str]] = defaultdict(list)
    for package in packages():
        depth = 2 if package.startswith("app.") else 1
        if package.count(".") == depth:
            inside[top(package)].append(package.rpartition(".")[2])
    texts = {box: wrap(", ".join(inside[box]), MOST_CHARACTERS) for box in graph}
    plan = Layout(graph, {box: len(text) for box, text in texts.items()})
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {plan.width} {plan.height}" role="img">',
        "<title>The rooms of Poolhouse, and which of them import which</title>",
        f"<style>{STYLE}</style>",
        TIP,
        f'<rect class="paper" width="{plan.width}" height="{plan.height}"/>',
        *(f'<path d="{plan.line(way)}" marker-end="url(#tip)"/>' for way in plan.ways),
    ]
    for box, floor in plan.floor_of.items():
        x, y = plan.x[box] - BOX_WIDTH // 2, plan.top_of[floor]
        parts.append(
            f'<rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{plan.height_of[floor]}" rx="6"/>'
            f'<text class="name" x="{x + 10}" y="{y + 22}">{escape(box)}</text>'
        )
        parts += [
            f'<text class="rooms" x="{x + 10}" y="{y + TITLE + 4 + LINE * row}">{escape(text)}</text>'
            for row, text in enumerate(texts[box])
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


# The page


def table() -> str:
    """Return the table of packages for the current code."""
    rows = [
        f"| `{room.path}` | {room.duty.replace('|', chr(92) + '|')} | {room.n_files} | {', '.join(room.imports)} |"
        for room in rooms()
    ]
    return "\n".join(["| room | duty | files | imports |", "|---|---|---:|---|", *rows])


def written_table() -> str:
    """Return the table that docs/architecture.md contains."""
    return PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0].strip()


def plan_of(rows: str) -> dict[str, str]:
    """Return the imports of each package in a table. Only these must be current, not descriptions and file counts."""
    cells = [row.replace("\\|", "").split("|") for row in rows.splitlines()[2:]]
    return {cell[1].strip(): cell[4].strip() for cell in cells}


def main() -> None:
    before, begin, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE.name} lacks the line {BEGIN} or {END}: put both back")
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}", "utf-8")
    DRAWING.write_text(drawing(), "utf-8")
    print(f"{PAGE.relative_to(PROJECT)} and {DRAWING.relative_to(PROJECT)} are written")


if __name__ == "__main__":
    main()
