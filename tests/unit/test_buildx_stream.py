"""The rawjson parser on recorded streams of buildx 0.13.1 (in streams/): whole, cut, in other shapes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ortimg.engine.buildx import plain_line
from ortimg.engine.failure import explain_exit_code, failure_of
from ortimg.engine.rawjson import BuildEvent, EventKind, RawJsonParser

STREAMS = Path(__file__).parent / "streams"


def read(data: bytes, chunk: int = 1 << 16) -> tuple[RawJsonParser, list[BuildEvent]]:
    parser = RawJsonParser()
    events: list[BuildEvent] = []
    for start in range(0, len(data), chunk):
        events += parser.feed(data[start : start + chunk])
    events += parser.end()
    return parser, events


def recorded(name: str) -> bytes:
    return (STREAMS / f"{name}.txt").read_bytes()


def one_line_each(data: bytes) -> bytes:
    """The stream as later buildx write it: each message on one line, the plain words as they are."""
    text, lines, decoder = data.decode(), [], json.JSONDecoder()
    while text := text.lstrip("\n"):
        if text.startswith("{"):
            message, end = decoder.raw_decode(text)
            lines.append(json.dumps(message))
        else:
            end = (text + "\n").index("\n")
            lines.append(text[:end])
        text = text[end:]
    return ("\n".join(lines) + "\n").encode()


def test_a_build_that_passes_tells_its_steps_and_output() -> None:
    _, events = read(recorded("passed"))
    started = [e.step for e in events if e.kind is EventKind.STARTED and "internal" not in e.step]
    done = {e.step: e for e in events if e.kind is EventKind.DONE}
    assert started == [
        "[1/3] COPY root /",
        "[2/3] RUN --network=none <<EOT (set -eux...)",
        "[3/3] RUN ls /",
        "exporting to image",
    ]
    assert set(started) <= set(done)
    assert all(e.seconds is not None and 0 <= e.seconds < 60 for e in done.values())
    logs = [e.text for e in events if e.kind is EventKind.LOG and e.step.startswith("[2/3]")]
    assert logs[-3:] == ["1", "2", "3"]
    assert "+ seq 3" in logs


def test_the_word_error_in_the_output_of_a_good_step_is_no_error() -> None:
    parser, events = read(recorded("passed"))
    assert any("error" in e.text for e in events if e.kind is EventKind.LOG)
    assert parser.failed_step is None
    assert not [e for e in events if e.kind is EventKind.FAILED]


def test_each_step_begins_and_ends_once() -> None:
    for name in ("passed", "exit7", "abort-and-cancelled"):
        _, events = read(recorded(name))
        for kinds in ((EventKind.STARTED,), (EventKind.DONE, EventKind.FAILED)):
            numbers = [e.number for e in events if e.kind in kinds]
            assert len(numbers) == len(set(numbers)), name


def test_a_failure_names_step_exit_code_and_last_lines() -> None:
    parser, _ = read(recorded("exit7"))
    failure = failure_of(parser, 1)
    assert failure.step == "[2/2] RUN --network=none <<EOT (set -eux...)"
    assert failure.exit_code == 7
    assert not failure.environment
    assert failure.last_lines[-2:] == ("libcufft.so.10: cannot open shared object file", "+ exit 7")
    assert "libcufft.so.10" in str(failure)


def test_a_step_that_was_cancelled_by_anothers_failure_is_not_blamed() -> None:
    parser, _ = read(recorded("abort-and-cancelled"))
    assert sum(step.error is not None for step in parser.steps.values()) == 2
    failure = failure_of(parser, 1)
    assert failure.step is not None and failure.step.startswith("[broken 2/2]")
    assert failure.exit_code == 134
    assert failure.cause == "exit code 134 (SIGABRT, the program aborted)"
    assert "libcudnn_cnn_infer.so.8" in "\n".join(failure.last_lines)


def test_a_parse_error_has_no_step_but_buildxs_own_words() -> None:
    parser, _ = read(recorded("parse-error"))
    failure = failure_of(parser, 1)
    assert failure.step is None
    assert "unknown instruction: COPPY" in failure.cause
    assert any(">>> COPPY root /" in line for line in failure.last_lines)


@pytest.mark.parametrize("name", ["passed", "exit7", "abort-and-cancelled", "parse-error"])
def test_neither_chunks_nor_shape_change_the_events(name: str) -> None:
    data = recorded(name)
    _, expected = read(data)
    assert read(data, chunk=7)[1] == expected
    assert read(one_line_each(data))[1] == expected
    assert read(data.replace(b"\n", b"\r\n"))[1] == expected


@pytest.mark.parametrize("name", ["passed", "exit7"])
def test_a_stream_cut_anywhere_gives_the_events_before_the_cut(name: str) -> None:
    data = recorded(name)
    _, whole = read(data)
    for end in range(0, len(data), 97):
        events = list(RawJsonParser().feed(data[:end]))
        assert events == whole[: len(events)]
        list(read(data[:end]))  # what is left over at the end does no harm either


def test_foreign_lines_are_kept_and_do_no_harm() -> None:
    data = recorded("passed")
    words = b'time="2026-12-01" level=warning msg="no error here"\n{"vertexes": [{"digest": "cut\n\xff\xfe\n'
    parser, events = read(words + data)
    assert parser.plain_lines[0].startswith('time="2026')
    _, expected = read(data)
    assert [e for e in events if e.kind is not EventKind.PLAIN] == expected


def test_lines_split_over_messages_and_progress_bars() -> None:
    def log(data: str) -> bytes:
        return json.dumps({"logs": [{"vertex": "v", "stream": 1, "data": data}]}).encode() + b"\n"

    # "ab", "c\n10%\r100%\nend" in base64
    _, events = read(log("YWI=") + log("YwoxMCUNMTAwJQplbmQ=") + log("no base64!"))
    assert [e.text for e in events] == ["abc", "100%", "end"]


def test_exit_codes_in_words() -> None:
    assert explain_exit_code(137) == "exit code 137 (SIGKILL, killed or out of memory)"
    assert explain_exit_code(139) == "exit code 139 (SIGSEGV, segmentation fault)"
    assert explain_exit_code(1) == "exit code 1"


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        ("ERROR: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", True),
        (
            "ERROR: failed to solve: b:1: failed to resolve source metadata for b:1: dial tcp: no such host",
            True,
        ),
        ("ERROR: failed to solve: write /x: no space left on device", True),
        ("ERROR: failed to solve: unsupported diff media type: …tar+zstd: not implemented", True),
        ("ERROR: failed to solve: dockerfile parse error on line 2", False),
        ("", False),
    ],
)
def test_faults_of_the_machine_are_told_from_faults_of_the_build(words: str, environment: bool) -> None:
    parser, _ = read(words.encode())
    failure = failure_of(parser, 1)
    assert failure.environment is environment
    assert failure.cause


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("write /x: no space left on device", "the engine's disk is full"),
        ("unsupported diff media type: …tar+zstd: not implemented", "the engine cannot store layers"),
        ("failed to receive status: error reading from server: EOF", "the engine is gone"),
        ("b:1: failed to resolve source metadata for b:1: dial tcp: no such host", None),
        ("dockerfile parse error on line 2", None),
    ],
)
def test_what_no_other_build_can_get_past(words: str, why: str | None) -> None:
    assert failure_of(read(f"ERROR: failed to solve: {words}".encode())[0], 1).ends_all == why


def test_plain_log_lines() -> None:
    _, events = read(recorded("exit7"))
    text = "\n".join(map(plain_line, events))
    assert "#5 [2/2] RUN --network=none <<EOT (set -eux...)" in text
    assert "#5 libcufft.so.10: cannot open shared object file" in text
    assert "#5 ERROR 0.1s: process" in text
    assert "\nERROR: failed to solve: process" in text


@pytest.mark.parametrize(
    ("said", "returncode", "cause", "environment"),
    [
        (b"", -9, "docker buildx was ended by signal 9: it said nothing", True),
        (b"", 7, "docker buildx ended with status 7: it said nothing", False),
        (b"unknown flag: --progress\n\nUsage:  docker\n", 125, "status 125: unknown flag: --progress", True),
        (b"docker: 'buildx' is not a docker command.\n", 1, "is not a docker command", True),
    ],
)
def test_an_end_without_a_step_tells_what_was_said(
    said: bytes, returncode: int, cause: str, environment: bool
) -> None:
    failure = failure_of(read(said)[0], returncode)
    assert failure.step is None
    assert cause in failure.cause
    assert failure.environment is environment
