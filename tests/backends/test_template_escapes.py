"""Fifty ways out of a template's sandbox, as people have published them: none leads anywhere."""

from __future__ import annotations

import time

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from backends.contract import LocalTime, TemplateFailed
from backends.templates import jinja_sandbox
from backends.templates.sandboxed_rendering import render

SUBCLASSES = "''.__class__.__mro__[1].__subclasses__()"
ESCAPES = [
    f"{{{{ {SUBCLASSES} }}}}",
    f"{{{{ {SUBCLASSES}[40]('/etc/passwd').read() }}}}",
    "{{ ''['__class__'] }}",
    "{{ ''|attr('__class__') }}",
    "{{ ''|attr('__cla' ~ 'ss__') }}",
    "{{ ''|attr('\\x5f\\x5fclass\\x5f\\x5f') }}",
    "{{ ''|attr(['__cl','ass__']|join) }}",
    "{{ ''|attr('%c%cclass%c%c'|format(95,95,95,95)) }}",
    "{{ ().__class__.__base__ }}",
    "{{ [].__class__.__bases__[0] }}",
    "{{ {}.__class__.__mro__[-1] }}",
    "{{ (1).__class__.__base__.__subclasses__() }}",
    "{{ messages.__class__ }}",
    "{{ messages[0].__class__.__init__.__globals__ }}",
    "{{ messages.__init__.__globals__['os'] }}",
    "{{ messages.__reduce_ex__(2) }}",
    "{{ self.__init__.__globals__.__builtins__ }}",
    "{{ self._TemplateReference__context.cycler.__init__.__globals__.os.popen('id').read() }}",
    "{{ self|attr('_TemplateReference__context') }}",
    "{{ cycler.__init__.__globals__.os }}",
    "{{ cycler.next.__globals__ }}",
    "{{ joiner.__init__.__globals__.os }}",
    "{{ namespace.__init__.__globals__.os }}",
    "{{ namespace().__class__.__mro__ }}",
    "{{ lipsum.__globals__['os'].popen('id').read() }}",
    "{{ lipsum|attr('__globals__') }}",
    "{{ range.__class__.__base__ }}",
    "{{ dict.__base__.__subclasses__() }}",
    "{{ dict.mro() }}",
    "{{ raise_exception.__globals__ }}",
    "{{ raise_exception.__code__.co_consts }}",
    "{{ raise_exception.__closure__ }}",
    "{{ strftime_now.__self__.__class__.__mro__ }}",
    "{{ strftime_now.__func__ }}",
    "{{ ''.format.__self__.__class__ }}",
    "{{ '{0.__class__}'.format('') }}",
    "{{ '{0.__class__.__init__.__globals__}'.format(messages) }}",
    "{{ '{x.__class__}'.format_map({'x': ''}) }}",
    "{{ ('{0.__cl' ~ 'ass__}').format('') }}",
    "{{ '%s'|format(''.__class__) }}",
    "{{ ['']|map(attribute='__class__')|list }}",
    "{{ ['']|map('attr', '__class__')|list }}",
    "{{ [{'a': ''}]|map(attribute='a.__class__')|list }}",
    "{{ ['']|groupby('__class__') }}",
    "{{ ['']|sort(attribute='__class__')|list }}{{ ''.__class__ }}",
    "{{ ['']|selectattr('__class__')|map(attribute='__class__')|first }}",
    "{{ ['']|sum(attribute='__class__', start='') }}",
    "{% for k in ''.__dir__() %}{{ ''[k] }}{% endfor %}",
    "{% macro m() %}{{ caller.__globals__ }}{% endmacro %}{% call m() %}{% endcall %}{{ m.__globals__ }}",
    "{% set ns = namespace() %}{% set ns.__class__ = 1 %}{{ ns.__class__ }}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}{{ os.popen('id') }}",
    "{% extends '/etc/passwd' %}",
    "{{ (messages|map('attr', '__class__')|list)[0].mro() }}",
    "{{ (i for i in ()).gi_frame.f_globals }}",
]
LEAKS = ("<class", "<built-in", "<function", "<bound", "<module", "root:", "uid=", "__", "0x")


@pytest.mark.parametrize("template", ESCAPES)
def test_no_template_gets_out(template: str) -> None:
    """Refused, or nothing of Python is to be seen in what it makes."""
    started = time.monotonic()
    try:
        made = render(template, [{"role": "user", "content": "hello"}], now=LocalTime(1.0))
    except TemplateFailed:
        made = ""
    assert not [leak for leak in LEAKS if leak in made], made[:200]
    assert time.monotonic() - started < 20


def test_there_are_fifty_of_them() -> None:
    assert len(set(ESCAPES)) >= 50


def test_a_template_is_compiled_once_and_keeps_nothing_of_a_chat(monkeypatch: pytest.MonkeyPatch) -> None:
    made, environment = list[str](), jinja_sandbox._environment

    def noted() -> ImmutableSandboxedEnvironment:
        made.append("compiled")
        return environment()

    monkeypatch.setattr(jinja_sandbox, "_environment", noted)
    counts = (
        "{% set ns = namespace(n=0) %}"
        "{% for m in messages %}{% set ns.n = ns.n + 1 %}{{ m.content }}{% endfor %}{{ ns.n }}"
    )
    hello, more = {"role": "user", "content": "secret"}, {"role": "user", "content": "more"}
    assert [render(counts, [hello]), render(counts, [more, more])] == ["secret1", "moremore2"]
    assert len(made) == 1
    assert render("{{ messages|length }}", [hello]) == "1"
    assert len(made) == 2
