"""Text into segments: the same while it grows as at its end, nothing lost, nothing large."""

from __future__ import annotations

import random
import re

import pytest

from app.gui.chat.message import highlight, markdown
from app.gui.chat.message.markdown import (
    CODE_CHARS,
    LONG_CHARS,
    PIECE_CHARS,
    IncrementalParser,
    SegmentKind,
    html,
    tokens,
)

SAMPLE = """# Title

Here **is** a [link](https://a.b) and `code`.

- one
- two
  - three

| a | b |
|--|--:|
| 1 | 2 |

Text below a table.

```python
def f(x):
    return x + 1
```

1. a
2. b

> quote
> more

"""
TAG = re.compile(r"<[^>]+>")


def shown(text: str) -> str:
    """All words of a text as they are shown."""
    return "\n".join(TAG.sub("", segment.content) for segment in markdown.segments(text))


def test_kinds_of_segments() -> None:
    segments = markdown.segments(SAMPLE)
    assert [segment.kind for segment in segments] == [SegmentKind.TEXT, SegmentKind.CODE, SegmentKind.TEXT]
    assert segments[1].language == "python"
    assert segments[1].content == "def f(x):\n    return x + 1"
    assert '<p class="after">Text below' in segments[0].content


def test_a_growing_text_is_read_as_the_whole_one() -> None:
    chance = random.Random(1)
    text = SAMPLE * 12 + "".join(f"{n}. item {n}\n" for n in range(1, 900)) + SAMPLE
    whole = markdown.segments(text)
    for _ in range(10):
        reader, at = IncrementalParser(), 0
        while at < len(text):
            at += chance.randint(1, 900)
            before = list(reader.segments)
            first = reader.feed(text[:at])
            assert reader.segments[:first] == before[:first]
        assert reader.segments == whole


def test_html_is_text_and_pictures_are_links() -> None:
    segments = markdown.segments("<b>bold</b> <script>x()</script>\n\n![sun](http://a.b/c.png)")
    assert "&lt;b&gt;bold&lt;/b&gt;" in segments[0].content
    assert "<script" not in segments[0].content
    assert "<img" not in segments[0].content
    assert '<a href="http://a.b/c.png">sun</a>' in segments[0].content


@pytest.mark.parametrize("address", ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x"])
def test_dangerous_addresses_are_no_links(address: str) -> None:
    assert "<a href" not in markdown.segments(f"[press]({address})")[0].content


def test_links_explained_further_down_are_found_at_the_end() -> None:
    text = "See [here][1].\n\n```\ncode\n```\n\n[1]: https://a.b\n"
    reader = IncrementalParser()
    for end in range(0, len(text) + 1, 5):
        reader.feed(text[:end])
    assert "<a href" not in reader.segments[0].content
    assert reader.finish(text) == 0
    assert '<a href="https://a.b">' in reader.segments[0].content


def test_a_long_list_goes_on_counting() -> None:
    segments = markdown.segments("".join(f"{n}. item\n" for n in range(5, 2005)))
    assert len(segments) > 2
    starts = [int(segment.content.split('start="')[1].split('"')[0]) for segment in segments]
    counts = [segment.content.count("<li>") for segment in segments]
    assert starts[0] == 5
    assert all(begin + n == after for begin, n, after in zip(starts, counts, starts[1:], strict=False))
    assert sum(counts) == 2000


def test_a_long_table_keeps_its_head() -> None:
    text = "| number | square |\n|--|--|\n" + "".join(f"| {n} | {n * n} |\n" for n in range(900))
    reader = IncrementalParser()
    for end in range(0, len(text), 700):
        reader.feed(text[:end])
    reader.feed(text)
    assert len(reader.segments) > 2
    assert all("<th>number</th>" in segment.content for segment in reader.segments)
    assert sum(segment.content.count("<td>") for segment in reader.segments) == 1800
    assert reader.segments == markdown.segments(text)


def test_a_long_listing_is_cut_and_nothing_is_lost() -> None:
    code = "\n".join(f"x{n} = {n}" for n in range(6000))
    text = f"Before\n\n```python\n{code}\n```\n\nAfter"
    reader = IncrementalParser()
    for end in range(0, len(text), 5000):
        reader.feed(text[:end])
    reader.feed(text)
    listings = [segment for segment in reader.segments if segment.kind is SegmentKind.CODE]
    assert len(listings) == -(-len(code) // CODE_CHARS)
    assert all(listing.language == "python" for listing in listings)
    assert "\n".join(listing.content for listing in listings) == code
    assert reader.segments == markdown.segments(text)


ADVERSE = {
    "a line of a megabyte": "word " * 200_000,
    "ten thousand items": "".join(f"- item {n}\n" for n in range(10_000)),
    "quotes in quotes": "> " * 500 + "the inmost words",
    "lists in lists": "".join("  " * n + "- x\n" for n in range(60)) + "  " * 60 + "- the inmost words",
    "stars": "*a" * 20_000,
    "brackets": "[" * 20_000 + "x",
    "pictures": "![[" * 7_000,
    "right to left": "שלום עולם " * 4_000,
    "a wide table": "|a" * 3_000 + "\n" + "|-" * 3_000 + "\n" + "|b" * 3_000,
    "one item without end": "- " + "word " * 20_000,
}


@pytest.mark.long
@pytest.mark.parametrize("label", ADVERSE)
def test_adverse_text_stays_whole_and_in_small_pieces(label: str) -> None:
    text = ADVERSE[label]
    segments = markdown.segments(text)
    assert max(len(TAG.sub("", segment.content)) for segment in segments) <= max(LONG_CHARS * 2, PIECE_CHARS)
    letters = [sign for sign in text if sign.isalnum()]
    kept = [sign for sign in shown(text) if sign.isalnum()]
    assert kept[: len(letters)] == letters
    reader = IncrementalParser()  # and while it grows
    for end in range(0, len(text), max(1, len(text) // 40)):
        reader.feed(text[:end])
    reader.feed(text)
    assert [s for segment in reader.segments for s in TAG.sub("", segment.content) if s.isalnum()] == letters


def test_code_has_colors_where_its_language_is_known() -> None:
    lines = list(highlight.lines('def f():\n    """Two\n    lines."""\n    return 1', "python"))
    assert lines[0] == ((0, 3, "code_keyword"), (4, 1, "code_function"))
    assert {color for line in lines[1:3] for *_, color in line} == {"code_string"}
    assert lines[3] == ((4, 6, "code_keyword"), (11, 1, "code_number"))
    assert list(highlight.lines("x = 1", "nobody-knows-it")) == []
    assert list(highlight.lines("x" * 5000, "python")) == []


def test_links_have_no_title() -> None:
    assert "title" not in html(tokens('[a](https://a.b "<b>x</b>") ![c](https://a.b/c "t")'))


def test_task_lists_show_boxes() -> None:
    """Boxes are written as on GitHub. A bracket elsewhere stays what it is."""
    (shown,) = markdown.segments("- [ ] one\n- [x] two **bold**\n- [X] three\n- [y] four\n- text [x] five")
    for words in ("\u2610 one", "\u2611 two <strong>bold</strong>", "\u2611 three", "[y] four", "text [x] five"):
        assert words in shown.content
    assert markdown.segments("[x] no list")[0].content == "<p>[x] no list</p>\n"
