"""Strict YAML: text stays text, nothing is lost in silence, every fault has its line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ortimg.core.strict_yaml import decode, read
from ortimg.errors import ConfigError


def faults(text: str) -> list[tuple[int, str]]:
    return [(problem.line, problem.message) for problem in read(text).problems]


def test_lines_of_every_path() -> None:
    document = read("a: x\nb:\n  - one\n  - {c: two,\n     d: three}\n")
    assert document.data == {"a": "x", "b": ["one", {"c": "two", "d": "three"}]}
    assert document.lines == {
        (): 1,
        ("a",): 1,
        ("b",): 2,
        ("b", 0): 3,
        ("b", 1): 4,
        ("b", 1, "c"): 4,
        ("b", 1, "d"): 5,
    }
    assert document.line(("b", 1, "not there")) == 4


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("1.20", "the number 1.2"),
        ("12.10", "the number 12.1"),
        ("8", "a number"),
        ("12.2", "a number"),
        ("no", "the truth value False"),
        ("on", "the truth value True"),
        ("22:22", "the number 1342"),
        ("1000:1000", None),
        ("1:2", "the number 62"),
        ("1:20.5", "the number 80.5"),
        ("0o17", None),  # YAML 1.1 has no such number: a string
        ("00123456", "the number 42798"),
        ("0x1F", "the number 31"),
        ("1_20", "the number 120"),
        ("2024-05-01", "a date"),
        ("2024-13-45", "a date"),  # looks like one, is none
        (".inf", "the number inf"),
        ("1.16.2", None),
        ("debian12", None),
    ],
)
def test_only_text_is_text(written: str, read_as: str | None) -> None:
    document = read(f"a: b\nvalue: {written}\n")
    assert document.data == {"a": "b", "value": written}, "the text as written goes on"
    expected = [(2, f'YAML reads {written} as {read_as}; write "{written}"')] if read_as else []
    assert [(problem.line, problem.message) for problem in document.problems] == expected
    for quoted in (f'"{written}"', f"'{written}'"):
        assert read(f"value: {quoted}").problems == ()


def test_a_key_that_is_a_number() -> None:
    assert faults("1.20: x") == [(1, 'YAML reads 1.20 as the number 1.2; write "1.20"')]


def test_nothing_written_is_none() -> None:
    assert read("a:\nb: ~\nc: null\n").data == {"a": None, "b": None, "c": None}


def test_equal_keys() -> None:
    assert faults("a: 'x'\nb: 'y'\na: 'z'\n") == [(3, "written twice, in line 1 and in line 3; keep one")]
    assert faults("x:\n  - {a: b,\n     a: c}\n") == [(3, "written twice, in line 2 and in line 3; keep one")]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "empty"),
        ("# only a comment\n", 1, "empty"),
        ("a: b\n\tc: d\n", 2, "tab"),
        ("a:\n\t- b\n", 2, "tab"),
        ("a: b\n---\nc: d\n", 2, "second document"),
        ("a: *nope\n", 1, "alias"),
        ("x: &x {a: b}\ny: {<<: *x, c: d}\n", 2, "merge key"),
        ("a: &x [*x]\n", 1, "around itself"),
        ("a: &x {b: {c: *x}}\n", 1, "around itself"),
        ("? [a, b]\n: c\n", 1, "plain words"),
        ("a: !!python/object:os.system x\n", 1, "tag"),
        ("a: !mine {b: c}\n", 1, "tag"),
        ("a: [b\nc: d\n", 2, "which began in line 1"),
        ("a: b: c\n", 1, "mapping values are not allowed"),
        ("a: b\nc: \x01\n", 2, "control character"),
        ("a: " + "[" * 60 + "]" * 60, 1, "nested deeper"),
        ("[" * 100_000, 1, "nested deeper"),
    ],
)
def test_traps(text: str, line: int, words: str) -> None:
    found = faults(text)
    assert len(found) == 1
    assert found[0][0] == line
    assert words in found[0][1]


def test_an_alias_is_fine_where_it_stands_for_something() -> None:
    assert read("a: &x [b]\nc: *x\n").data == {"a": ["b"], "c": ["b"]}
    assert read("a: &x [b]\nc: *x\n").problems == ()


def test_alias_bomb() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    assert [message for _, message in faults("\n".join(rows))] == [
        "more than 50000 values, aliases counted at each use"
    ]


def test_line_ends_and_byte_order_mark() -> None:
    assert decode(b"\xef\xbb\xbfa: b\r\nc: d\r\n", "f") == "a: b\r\nc: d\r\n"
    document = read("\ufeffa: b\r\nc: 8\r\n")
    assert document.data == {"a": "b", "c": "8"}
    assert document.problems[0].line == 2


def test_not_utf8() -> None:
    with pytest.raises(ConfigError, match=r"images.yaml:2: byte 7 is not UTF-8"):
        decode(b"a: b\nc:\xff\n", "images.yaml")


@given(st.text(max_size=60))
@settings(max_examples=60)
def test_reads_anything_without_raising(text: str) -> None:
    document = read(text)
    assert document.problems or document.lines


PIECES = [
    "a",
    "b: ",
    "- c",
    "&x ",
    "*x",
    "<<: ",
    "1.20",
    "{",
    "}",
    "[",
    "]",
    "\n",
    "  ",
    ", ",
    "? ",
    "!t ",
    "'",
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
@settings(max_examples=60)
def test_reads_broken_yaml_without_raising(text: str) -> None:
    document = read(text)
    assert document.problems or document.lines
