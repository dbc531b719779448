"""The doctor on what a user hands in: options, profiles, programs, and how a program ended."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
from doctor_facts import ORT, library, loader, one, system

from ortimg.core.doctor.ending import Ending, check_ending
from ortimg.core.doctor.facts import Elf
from ortimg.core.doctor.findings import Found, fail, make_report, ok, parse_advice, warn
from ortimg.core.doctor.names import Check
from ortimg.core.doctor.options import check_options, parse_options, read_bytes, size_words, split_option
from ortimg.core.doctor.profile import check_profile, read_profile
from ortimg.core.doctor.program import check_program
from ortimg.data import read_catalogue
from ortimg.errors import ConfigError, ExitCode
from ortimg.verify.report import Finding, FindingVerdict, Verdict

OPTIONS = parse_options((files("ortimg.data") / "cuda-options.yaml").read_bytes())
ADVICE = parse_advice((files("ortimg.data") / "doctor-checks.yaml").read_bytes())
PROFILES = Path(__file__).parents[1] / "docker" / "profiles"
GIB = 1 << 30


def option(word: str, ort: str | None = None, memory: int = 0) -> Found:
    return [*check_options([split_option(word)], OPTIONS, ort, memory)][-1]


@pytest.mark.parametrize(
    ("value", "verdict", "words"),
    [
        ("4096", "fail", "4 KiB: no model fits; it counts bytes, not MiB"),
        ("4G", "fail", "plain bytes only"),
        ("4294967296", "ok", "4 GiB"),
        ("999999999999", "warning", "the card has 8 GiB: it limits nothing"),
        ("0", "fail", "a number of bytes from 1 on"),
        ("-1", "fail", "a number of bytes from 1 on"),
        ("", "fail", "a number of bytes from 1 on"),
        ("18446744073709551615", "ok", "no limit at all"),
        ("99999999999999999999999", "fail", "a number of bytes from 1 on"),
    ],
)
def test_a_memory_limit_counts_bytes(value: str, verdict: str, words: str) -> None:
    finding = option(f"gpu_mem_limit={value}", memory=8 * GIB)
    assert (finding.check, finding.verdict.value) == (Check.OPTION_MEMORY, verdict)
    assert words in finding.evidence


def test_the_cure_of_a_unit_is_the_number() -> None:
    assert "gpu_mem_limit=4294967296, which is 4 GiB" in str(option("gpu_mem_limit=4G").cure)


@pytest.mark.parametrize("value", ["0", "false", '"0"', "False"])
def test_copies_in_streams_of_their_own_are_warned_of_loudly(value: str) -> None:
    finding = option(f"do_copy_in_default_stream={value}")
    assert finding.verdict is FindingVerdict.WARNING
    assert "DO NOT SHIP" in finding.evidence
    assert "1, the default, copies in the compute stream and is the safe one" in finding.evidence
    assert str(ADVICE[finding.check].source).startswith("https://")


@pytest.mark.parametrize("value", ["1", "true"])
def test_copies_in_the_compute_stream_are_safe(value: str) -> None:
    assert option(f"do_copy_in_default_stream={value}").verdict is FindingVerdict.OK


@pytest.mark.parametrize(
    ("word", "verdict", "words"),
    [
        ("gpu_mem_limt=1", "fail", 'did you mean "gpu_mem_limit"'),
        ("cudnn_conv_algo_search=FAST", "fail", "EXHAUSTIVE, HEURISTIC, DEFAULT"),
        ("cudnn_conv_algo_search=1", "ok", "HEURISTIC"),
        ("device_id=-1", "fail", "whole number from 0 on"),
        ("device_id=٣", "fail", "whole number from 0 on"),
        ("device_id=99999999999999999999", "fail", "whole number from 0 on"),
        ("use_tf32=yes", "fail", "0 or 1"),
        ("user_compute_stream=12345", "fail", "inside a running program"),
        ("arena_extend_strategy=kNextPowerOfTwo", "warning", "doubles the one before"),
        ("arena_extend_strategy=1", "ok", "by what is asked for"),
    ],
)
def test_options_and_their_values(word: str, verdict: str, words: str) -> None:
    finding = option(word)
    assert finding.verdict.value == verdict
    assert words in finding.evidence


def test_an_option_that_is_newer_than_the_onnx_runtime() -> None:
    (found,) = check_options([("use_tf32", "1")], OPTIONS, "1.16.2", 0)
    assert found.check is Check.OPTION_UNKNOWN
    assert "since 1.18, this is 1.16.2" in found.evidence


@pytest.mark.parametrize("word", ["gpu_mem_limit", "=1", ""])
def test_an_option_without_a_value_is_a_usage_error(word: str) -> None:
    with pytest.raises(ConfigError, match="KEY=VALUE"):
        split_option(word)


def test_sizes_as_words_and_back() -> None:
    assert [size_words(number) for number in (0, 1536, 4 * GIB)] == ["0 bytes", "1.5 KiB", "4 GiB"]
    assert [read_bytes(word) for word in ("4G", "512MiB", "1k", "G", "4X", "1.5G")] == [
        4 * GIB,
        512 << 20,
        1024,
        None,
        None,
        None,
    ]


def profile(name: str) -> str:
    return (PROFILES / name).read_text()


def test_three_of_five_nodes_on_the_cpu_fail_with_their_operators() -> None:
    (finding,) = check_profile(read_profile(profile("1.16.2-three-of-five-on-the-cpu.json")), 1.0)
    assert finding.verdict is FindingVerdict.FAIL
    assert "2 of 5 nodes ran on CUDA (40%)" in finding.evidence
    assert "Asin (CPU), Atan (CPU), Det (CPU)" in finding.evidence


def test_a_lower_limit_lets_them_pass() -> None:
    (finding,) = check_profile(read_profile(profile("1.16.2-three-of-five-on-the-cpu.json")), 0.4)
    assert finding.verdict is FindingVerdict.OK


def test_all_nodes_on_cuda_pass() -> None:
    (finding,) = check_profile(read_profile(profile("1.16.2-all-on-cuda.json")), 1.0)
    assert finding.verdict is FindingVerdict.OK


def test_nodes_without_names_are_counted_one_by_one() -> None:
    event = {"cat": "Node", "name": "_kernel_time"}
    events = [
        {**event, "args": {"provider": "CUDAExecutionProvider", "op_name": "Relu", "node_index": str(place)}}
        for place in range(3)
    ]
    assert len(read_profile(json.dumps(events)).providers) == 3


def test_a_profile_that_was_cut_is_read_and_told() -> None:
    text = profile("1.16.2-all-on-cuda.json")
    found = [*check_profile(read_profile(text[: len(text) - 400]), 0)]
    assert "has no end" in found[-1].evidence


@pytest.mark.parametrize("text", ["", "{}", "[]", "[1]", "no JSON", "[" * 100000, '[{"cat": "Node"}]'])
def test_what_is_no_profile_is_a_clear_error(text: str) -> None:
    with pytest.raises(ConfigError, match=r"no profile|no node"):
        read_profile(text)


RELEASES = read_catalogue().releases


def program(*needed: str, wants: tuple[str, ...] = (), soname: str = "libonnxruntime.so.1") -> Found:
    core = library(f"{ORT}/{soname}", defines=("VERS_1.20.1",), soname=soname)
    there = system(core, cached=[ORT])
    elf = Elf(needed=needed, wants=wants)
    return one(check_program("./app", elf, there, loader(there), RELEASES), Check.PROGRAM)


def test_a_program_where_no_onnx_runtime_is_found() -> None:
    there = system()
    finding = one(
        check_program("./app", Elf(needed=("libonnxruntime.so.1",)), there, loader(there), RELEASES),
        Check.PROGRAM,
    )
    assert finding.verdict is FindingVerdict.FAIL
    assert "ldconfig" in str(finding.cure)


def test_a_program_of_another_soname_must_be_linked_again() -> None:
    finding = program("libonnxruntime.so.1.17.3", "libc.so.6")
    assert finding.verdict is FindingVerdict.FAIL
    assert "libonnxruntime.so.1.17.3" in finding.evidence
    assert "link it again" in str(finding.cure)


def test_a_program_that_asks_for_other_symbols_must_be_linked_again() -> None:
    assert "VERS_1.19.2" in program("libonnxruntime.so.1", wants=("VERS_1.19.2",)).evidence


@pytest.mark.parametrize("needed", [("libonnxruntime.so.1",), ("libc.so.6",)])
def test_a_program_that_loads_is_fine(needed: tuple[str, ...]) -> None:
    assert program(*needed, wants=("VERS_1.20.1",)).verdict is FindingVerdict.OK


@pytest.mark.parametrize(
    ("status", "words"),
    [(134, "exit 134 (SIGABRT"), (139, "exit 139 (SIGSEGV"), (127, "exit 127 (not found)"), (3, "exit 3;")],
)
def test_how_a_program_ended_is_told_with_its_last_line(status: int, words: str) -> None:
    (finding,) = check_ending(Ending("./test", status, "the last words", 9), mixed=False)
    assert finding.verdict is FindingVerdict.FAIL
    assert words in finding.evidence
    assert "last line: the last words" in finding.evidence


def test_a_hang_is_named_and_nodes_on_both_sides_with_it() -> None:
    ending = Ending("./test", None, "", 9, ("2 in futex_wait_queue",), ("/x/libcuda.so.1",))
    (plain,) = check_ending(ending, mixed=False)
    (mixed,) = check_ending(ending, mixed=True)
    assert "hang: it did not end within 9 s" in plain.evidence
    assert "2 in futex_wait_queue" in plain.evidence
    assert "both CPU and CUDA" in mixed.evidence
    assert "do_copy_in_default_stream at 1" in str(mixed.cure)


@pytest.mark.parametrize("command", ["docker run --rm IMAGE serve", "/usr/bin/podman exec name serve"])
def test_a_hang_in_a_container_is_not_said_to_be_over(command: str) -> None:
    (finding,) = check_ending(Ending(command, None, "", 9, ("8 in futex_do_wait",)), mixed=False)
    assert "its container may still run" in finding.evidence
    assert "futex" not in finding.evidence  # those would be the threads of the engine's client


@pytest.mark.parametrize(
    ("found", "verdict", "code"),
    [
        ([ok(Check.LOG, "a"), warn(Check.LOG, "b")], Verdict.PASS, ExitCode.DONE),
        ([fail(Check.DRIVER_ABSENT, "a", machine=True)], Verdict.ENVIRONMENT, ExitCode.ENVIRONMENT),
        (
            [fail(Check.DRIVER_ABSENT, "a", machine=True), fail(Check.ORT_TWO, "b")],
            Verdict.FAIL,
            ExitCode.FAILED,
        ),
    ],
)
def test_the_machine_is_at_fault_only_where_nothing_else_is(
    found: list[Found], verdict: Verdict, code: ExitCode
) -> None:
    report = make_report("x", found, ADVICE)
    assert (report.verdict, report.exit_code) == (verdict, code)


def test_what_ort_verify_has_blamed_is_not_said_twice() -> None:
    blamed = Finding(
        check="cuda.libraries", verdict=FindingVerdict.FAIL, evidence="libcufft.so.11 not found", cure="x"
    )
    found = [
        fail(Check.LIBRARY_MISSING, "a", None, "libcufft.so.11"),
        fail(Check.LIBRARY_MISSING, "b", None, "z"),
    ]
    report = make_report("x", found, ADVICE, [blamed])
    assert [row.evidence for row in report.findings] == ["b", "libcufft.so.11 not found"]


def test_every_finding_that_is_not_fine_has_a_cure() -> None:
    report = make_report("x", [warn(check, check.value) for check in Check], ADVICE)
    assert all(row.cure for row in report.findings)
