"""Names of images."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ortimg.core.tags import repository_problem, tag_problem


@pytest.mark.parametrize("tag", ["latest", "1.16.2-cuda11.8-cudnn8-debian12", "_x", "X", "a" * 128])
def test_good_tags(tag: str) -> None:
    assert tag_problem(tag) is None


@pytest.mark.parametrize(
    ("tag", "words"),
    [
        ("1.20.1+cu12", '"+" is not allowed'),
        ("-x", 'begins with "-"'),
        (".x", 'begins with "."'),
        ("a" * 129, "129 characters"),
        ("1.20.1\n", r'"\n" is not allowed'),
        ("Ünïcode", '"Ü" is not allowed'),
        ("a b", '" " is not allowed'),
        ("", "empty"),
    ],
)
def test_bad_tags(tag: str, words: str) -> None:
    problem = tag_problem(tag)
    assert problem is not None
    assert words in problem
    assert "\n" not in problem


@pytest.mark.parametrize(
    "repository",
    [
        "onnxruntime-gpu",
        "team/onnxruntime-gpu",
        "registry.example.com/team/onnxruntime-gpu",
        "localhost:5000/x",
        "127.0.0.1:5001/a/b__c/d.e",
        "[::1]:5000/x",
        "[::1]/x",
        "localhost:65535/x",
        "Registry.Example.com/x",
    ],
)
def test_good_repositories(repository: str) -> None:
    assert repository_problem(repository) is None


@pytest.mark.parametrize(
    ("repository", "words"),
    [
        ("MyOrg/Ort", 'write "myorg/ort"'),
        ("ort:latest", "leave out the tag or digest"),
        ("registry.example.com/ort:1", "leave out the tag or digest"),
        ("ort@sha256:00", "leave out the tag or digest"),
        ("https://registry.example.com/ort", 'leave out "https://"'),
        ("me:secret@registry.example.com/ort", "a log-in cannot stand in the name"),
        ("a//b", "no part of a name"),
        ("a/b\n", "no part of a name"),
        ("-a", "no part of a name"),
        ("bad_host.:x/ort", "no host name"),
        ("registry.example.com:99999/ort", "ports are 1 to 65535, not 99999"),
        ("localhost:0/ort", "ports are 1 to 65535, not 0"),
        ("[::1]:65536/ort", "ports are 1 to 65535, not 65536"),
        ("a" * 256, "256 characters"),
        ("", "empty"),
    ],
)
def test_bad_repositories(repository: str, words: str) -> None:
    problem = repository_problem(repository)
    assert problem is not None
    assert words in problem
    assert "\n" not in problem
    assert "secret" not in problem


@given(st.text(max_size=140))
@settings(max_examples=50)
def test_any_text_gets_an_answer(text: str) -> None:
    for problem in (tag_problem(text), repository_problem(text)):
        assert problem is None or (problem and "\n" not in problem)
