"""Zod's regular expressions: each is known, and what may be written then is what it matches."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import BadInput
from app.core.json_schema.json_grammar import PATTERNS, json_grammar, string_expression
from app.core.tools.call_grammar import calls_grammar
from tests.core.call_formats import FORMATS
from tests.core.json_schema.test_json_ranges import pattern

DATE = (
    r"^(?:(?:\d\d[2468][048]|\d\d[13579][26]|\d\d0[48]|[02468][048]00|[13579][26]00)-02-29|\d{4}-(?:(?:0[1"
    r"3578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|(?:02)-(?:0[1-9]|1\d|2[0-8])))"
)
IN_UTC = DATE + r"T(?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z))$"
ZOD = [  # what z.toJSONSchema of its versions 4.0 to 4.6 writes
    r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$",
    r"^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000)$",
    r"^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12})$",
    r"^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-6[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12})$",
    r"^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-7[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12})$",
    r"^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})$",
    DATE + r"$",
    r"^(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?$",
    DATE + r"T(?:(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z))$",
    DATE + r"T(?:(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z|([+-](?:[01]\d|2[0-3]):[0-5]\d)))$",
    DATE + r"T(?:(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z|))$",
    r"^P(?:(\d+W)|(?!.*W)(?=\d|T\d)(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?)$",
    r"^(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9][0-9]|[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9][0-9]|[0-9])$",
    r"^(?=.{1,253}\.?$)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[-0-9a-zA-Z]{0,61}[0-9a-zA-Z])?)*\.?$",
    r"^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$",
    r"^(([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,5}(:[0-9a-fA-F]{1,4}){1,2}|([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,4}){1,3}|([0-9a-fA-F]{1,4}:){1,3}(:[0-9a-fA-F]{1,4}){1,4}|([0-9a-fA-F]{1,4}:){1,2}(:[0-9a-fA-F]{1,4}){1,5}|[0-9a-fA-F]{1,4}:((:[0-9a-fA-F]{1,4}){1,6})|:((:[0-9a-fA-F]{1,4}){1,7}|:))$",
    IN_UTC,
    DATE + r"T(?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|([+-](?:[01]\d|2[0-3]):[0-5]\d)))$",
    DATE + r"T(?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z)|(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?)$",
    r"^(?:[A-Za-z0-9_'+\-]+\.)*[A-Za-z0-9_'+\-]*[A-Za-z0-9_+-]@(?:[A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$",
]


@pytest.mark.parametrize("known", ZOD)
def test_what_may_be_written_is_what_zod_takes(known: str) -> None:
    text, least, most = PATTERNS[known]
    theirs = re.compile(known.replace(r"\d", "[0-9]"))

    @given(st.from_regex(pattern(text), fullmatch=True))
    def each(written: str) -> None:
        assert theirs.fullmatch(written)
        assert least <= len(written) <= most

    each()


def test_none_is_known_that_zod_does_not_write() -> None:
    of_a_version = {name for name in PATTERNS if "-[89abAB]" in str(name)}
    assert set(PATTERNS) - of_a_version <= set(ZOD)
    assert len(of_a_version) == 10


def test_a_known_one_goes_before_its_format_and_any_other_is_refused() -> None:
    """Zod's moments are in UTC where nothing else is said, and a `date-time` may have any zone."""
    moment = {"type": "string", "format": "date-time"}
    free, bound = json_grammar(moment), json_grammar(moment | {"pattern": IN_UTC})
    assert "[+-]" in free
    assert "[+-]" not in bound
    short = {"pattern": IN_UTC, "maxLength": 9}
    odds: list[dict[str, object]] = [{"pattern": "^a$"}, {**short}, {"pattern": 5}, {"pattern": {}}]
    for odd in odds:
        with pytest.raises(BadInput) as refused:
            json_grammar(moment | odd)
        assert refused.value.reason.facts["why"] == "pattern is not supported"
    assert json_grammar({"type": "integer", "pattern": "^a$"}) == json_grammar({"type": "integer"})


def test_it_is_kept_to_between_tags_too() -> None:
    mail = {"type": "string", "pattern": next(name for name in ZOD if "@" in name)}
    tool = {"type": "object", "properties": {"to": mail}, "required": ["to"]}
    assert string_expression(mail, 0, None) in calls_grammar(FORMATS["qwen_coder"], {"send": tool}, many=False)
