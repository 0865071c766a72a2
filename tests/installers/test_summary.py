"""The summary of `make installers-test`: every test with its seconds and its end, every file with its size."""

from __future__ import annotations

from pathlib import Path

from tests.installers.__main__ import artifacts, read_report, summary

CASES = (
    ("test_a", "12.34", '<properties><property name="seconds" value="21.5"/></properties>'),
    ("test_b[bookworm]", "0.1", '<skipped message="needs root"/>'),
    ("test_c", "3", '<failure message="assert 1 == 2&#10;more">x</failure>'),
    ("test_d", "3", '<error message="no place">x</error>'),
)
REPORT = "".join(
    f'<testcase classname="tests.installers.test_deb" name="{name}" time="{seconds}">{end}</testcase>'
    for name, seconds, end in CASES
)


def test_every_test_is_named_with_its_end(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(f"<testsuites>{REPORT}</testsuites>", "utf-8")
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "a.deb").write_bytes(bytes(2048))
    lines = summary(["  1.0 s built"], read_report(report), artifacts(tmp_path / "dist"))
    text = "\n".join(lines)
    assert "== what was tried: 1 passed, 2 failed, 1 skipped" in lines
    assert "     12.3 s  passed   test_deb::test_a: seconds 21.5" in lines
    assert "skipped  test_deb::test_b[bookworm]: needs root" in text
    assert "failed   test_deb::test_c: assert 1 == 2" in text
    assert "more" not in text
    assert "failed   test_deb::test_d: no place" in text
    assert "  2.0 KiB  a.deb  SHA-256 e5a00aa9991ac8a5ee3109844d84a55583bd20572ad3ffcd42792f3c36b183ad" in text
