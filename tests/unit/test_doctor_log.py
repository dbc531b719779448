"""Reading logs: which fault is in a text. Texts of real runs stand in the folder `logs`."""

from __future__ import annotations

import gzip
import json
import os
import re
import threading
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from ortimg.core.doctor.findings import Found
from ortimg.core.doctor.log import LogFault, LogReader, parse_faults, parse_loader_words
from ortimg.doctor.log_file import pieces_of
from ortimg.errors import ConfigError
from ortimg.verify.report import FindingVerdict

FAULTS = parse_faults((files("ortimg.data") / "log-faults.yaml").read_bytes())
LOGS = Path(__file__).parent / "logs"

# One text for each row; a row without one fails the test below.
TEXTS = dict(line.split("\t", 1) for line in (LOGS / "faults.txt").read_text().splitlines())
# Where it was reported, the fault that must stand first, the words of ONNX Runtime, CUDA or Docker in it.
REPORTS = [line.split("\t") for line in (LOGS / "reports.txt").read_text().splitlines()]
CUDA_FAULTS = yaml.safe_load((files("ortimg.data") / "gpu-faults.yaml").read_bytes())


WORDS = parse_loader_words((files("ortimg.data") / "loader-words.yaml").read_bytes())


def read(text: str) -> LogReader:
    reader = LogReader(FAULTS, WORDS)
    reader.read(text)
    return reader


def found(text: str) -> dict[str, Found]:
    return {one.name: one for one in read(text).findings()}


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_each_fault_is_known_by_its_text_and_by_no_other(fault: LogFault) -> None:
    seen = read(TEXTS[fault.name])
    assert [one.name for one in FAULTS if seen.saw(one.name)] == [fault.name]


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_what_a_fault_says_is_whole(fault: LogFault) -> None:
    groups = {*re.compile(fault.pattern).groupindex, "size"}
    assert {*re.findall(r"\{(\w+)\}", fault.says + fault.cure)} <= groups
    assert fault.source == "measured" or str(fault.source).startswith("https://")
    for one in read(TEXTS[fault.name]).findings():
        assert "{" not in one.evidence.partition(" (line")[0]


@pytest.mark.parametrize(("fault", "text"), [row[1:] for row in REPORTS], ids=[row[0] for row in REPORTS])
def test_what_people_report_is_told_by_its_fault(fault: str, text: str) -> None:
    reader = read(text.replace("\\n", "\n") + "\n")
    assert next(reader.findings()).fault == fault


@pytest.mark.parametrize("row", CUDA_FAULTS["cuda"], ids=[str(row["code"]) for row in CUDA_FAULTS["cuda"]])
def test_an_error_of_cuda_blames_whom_ort_verify_blames(row: dict[str, object]) -> None:
    reader = read(f"CUDA failure {row['code']}: some words ; GPU=0 ; hostname=h\n")
    faults = [one for one in FAULTS if reader.saw(one.name)]
    assert [one.machine for one in faults] == [True]


@pytest.mark.parametrize(
    "row", CUDA_FAULTS["engine"], ids=[" ".join(row["texts"]) for row in CUDA_FAULTS["engine"]]
)
def test_a_refusal_of_the_engine_blames_whom_verify_blames(row: dict[str, object]) -> None:
    texts = ": ".join(str(text) for text in row["texts"])  # type: ignore[attr-defined]
    whole = texts if texts.startswith(("nvidia", "CDI")) else f"nvidia-container-cli: {texts}"
    whole += ' "" with capabilities: [[gpu]]' * texts.startswith("could not")
    whole += ": nvidia" * texts.startswith("unknown or") + ": cuda>=12.8" * texts.endswith("condition")
    blamed = {one.machine for one in read(f"{whole} failed\n").findings() if one.fault}
    assert blamed == {row["fault"] == "machine"}


def test_a_driver_that_the_toolkit_lacks_is_the_machines_fault_alone() -> None:
    text = next(row[2] for row in REPORTS if row[0] == "nvidia-docker/1711").replace("\\n", "\n")
    assert {one.machine for one in read(text).findings()} == {True}


def test_tensorrt_that_is_not_there_is_no_fault_where_cuda_is_next() -> None:
    text = next(row[2] for row in REPORTS if row[0] == "onnxruntime/18597").replace("\\n", "\n")
    assert {one.verdict for one in read(text).findings()} == {FindingVerdict.WARNING}


@pytest.mark.parametrize(
    "line",
    [
        "cuFFT error: CUFFT_INTERNAL_ERROR",
        "ValueError: a thing that nobody knows",
        "./app: error while loading shared libraries: libfoo.so: wrong ELF class",
        "CUDA error: something new",
    ],
)
def test_an_error_without_ort_s_own_mark_is_not_called_fine(line: str) -> None:
    assert found(f"fine\n{line}\n")["log.unknown"].verdict is FindingVerdict.FAIL


@pytest.mark.parametrize(
    "line", ["cublasStatus: CUBLAS_STATUS_SUCCESS", "0 errors, CUDNN_VERSION 8907", "no Error here"]
)
def test_lines_that_only_look_like_errors_pass(line: str) -> None:
    assert [one.verdict for one in found(f"{line}\n").values()] == [FindingVerdict.OK]


@pytest.mark.parametrize("words", [*WORDS])
def test_the_loader_is_understood_in_every_language_of_glibc(words: str) -> None:
    assert read(f"./app: Fehler: libcufft.so.11: {words}: Datei nicht da\n").saw("library-not-found")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.", "gpu-hardware"),
        ("NVRM: API mismatch: the client has the version 535.1", "driver-mismatch"),
        ("Failed to initialize NVML: Driver/library version mismatch", "driver-mismatch"),
        (
            "The given version [17] is not supported, only version 1 to 10 is supported in this build.",
            "api-version",
        ),
    ],
)
def test_other_words_of_a_fault_are_known(line: str, fault: str) -> None:
    reader = read(f"{line}\n")
    assert [one.name for one in FAULTS if reader.saw(one.name)] == [fault]


@pytest.mark.parametrize("fault", ["device-id", "engine-no-gpu-driver", "option-unknown", "option-value"])
def test_json_logs_are_read(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "log"
    words = {"log": f"\x1b[1;31m{TEXTS[fault]}\x1b[m\n", "stream": "stderr", "time": "2026-12-01T00:00:00Z"}
    path.write_text(json.dumps(words) + "\n")
    assert read(whole(str(path))).saw(fault)


def test_an_absurd_request_is_not_called_out_of_memory() -> None:
    finding = found(TEXTS["memory-absurd"])["log.memory-absurd"]
    assert "4585490524328388608 bytes (4.0 EiB) is no shortage" in finding.evidence
    assert not finding.machine


def test_numbers_of_any_length_are_read() -> None:
    long = "9" * 5000
    assert found(f"Failed to allocate memory for requested buffer of size {long}\n")
    made = "Creating BFCArena for Cuda with following configs: "
    made += f"memory limit: {long} arena_extend_strategy: {long}"
    read(f"{made}\nExtending BFCArena for Cuda. bin_num:1\nTotal allocated bytes: {long}\n").findings()


def test_a_full_card_names_the_arena_and_its_options() -> None:
    finding = found(TEXTS["memory-full"])["log.memory-full"]
    assert "896 MiB" in finding.evidence
    assert "arena_extend_strategy=kSameAsRequested" in str(finding.cure)


def test_a_real_log_without_libraries_names_the_cause_before_the_consequence() -> None:
    reader = LogReader(FAULTS)
    for piece in pieces_of(str(LOGS / "no-cublas.txt")):
        reader.read(piece)
    seen = {one.name: one for one in reader.findings()}
    assert [*seen] == ["log.library-not-found", "log.provider-not-loaded"]
    assert "libcublasLt.so.11" in seen["log.library-not-found"].evidence
    assert seen["log.provider-not-loaded"].verdict is FindingVerdict.WARNING


def test_a_fallback_without_a_cause_is_a_fault() -> None:
    assert found(TEXTS["cpu-fallback"])["log.cpu-fallback"].verdict is FindingVerdict.FAIL


def test_a_provider_opened_alone_is_no_evidence() -> None:
    seen = found((LOGS / "alone.txt").read_text())
    assert {one.verdict for one in seen.values()} == {FindingVerdict.OK}
    assert "no evidence" in seen["log.provider-opened-alone"].evidence


def test_harmless_noise_is_called_noise() -> None:
    seen = found((LOGS / "noise.txt").read_text())
    assert [*seen] == ["log.device-discovery"]
    assert seen["log.device-discovery"].evidence.startswith("noise")
    assert seen["log.device-discovery"].verdict is FindingVerdict.OK


def test_the_growth_of_the_arena_is_told_and_the_cpus_is_not() -> None:
    finding = found((LOGS / "arena.txt").read_text())["memory.growth"]
    assert "arena of Cuda grew 2 times to 33 MiB, the largest step was 32 MiB" in finding.evidence
    assert "kNextPowerOfTwo, which doubles; no gpu_mem_limit" in finding.evidence


def test_a_hang_across_cpu_and_cuda_nodes_is_pointed_at() -> None:
    finding = found(TEXTS["cpu-and-cuda-nodes"])["log.cpu-and-cuda-nodes"]
    assert "hangs" in finding.evidence
    assert "do_copy_in_default_stream at 1" in str(finding.cure)


def test_the_stream_option_is_said_the_right_way_round() -> None:
    assert not read("'do_copy_in_default_stream': '1'").saw("stream-race")
    assert "1, the default, copies in the compute stream and is the safe one" in next(
        fault.says for fault in FAULTS if fault.name == "stream-race"
    )


def test_an_error_that_is_not_known_is_a_fault_with_its_line() -> None:
    seen = found("fine\n2026 [E:onnxruntime:, x.cc:1 f] something new\n")
    assert "line 2: 2026 [E:onnxruntime:, x.cc:1 f] something new" in seen["log.unknown"].evidence
    assert seen["log.unknown"].verdict is FindingVerdict.FAIL


def test_a_log_without_errors_passes() -> None:
    assert [one.verdict for one in found("all is well\n").values()] == [FindingVerdict.OK]


def test_lines_are_counted_over_pieces() -> None:
    reader = LogReader(FAULTS)
    for piece in ("one\ntwo\n", f"three\n{TEXTS['no-device']}\n", f"{TEXTS['no-device']}\n"):
        reader.read(piece)
    (finding,) = [one for one in reader.findings() if one.name == "log.no-device"]
    assert "(line 4, 1 more:" in finding.evidence


def whole(name: str) -> str:
    return "".join(pieces_of(name))


def test_colours_and_progress_bars_are_taken_out(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"\x1b[1;31mred\x1b[m\r\n10 %\r20 %\n\x1b]0;title\x07end")
    assert whole(str(path)) == "red\n10 %\n20 %\nend"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_any_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(f"Fehler: größer\n{TEXTS['no-device']}\n".encode(encoding))
    assert read(whole(str(path))).saw("no-device")


@pytest.mark.parametrize(
    "content",
    [b"", b"  \n\n", bytes(range(256)) * 20, b"\x7fELF" + b"a" * 100, gzip.compress(b"a" * 10000, mtime=0)],
    ids=["empty", "blank", "binary", "elf", "gzip"],
)
def test_what_is_no_log_is_a_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"is empty|is not text"):
        whole(str(path))


def test_some_nul_bytes_do_not_make_it_binary(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"\0" * 50 + TEXTS["no-device"].encode() + b"\n" + b"a line\n" * 50)
    assert read(whole(str(path))).saw("no-device")


def test_a_folder_and_a_missing_file_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        whole(str(tmp_path))
    with pytest.raises(ConfigError, match="cannot be read"):
        whole(str(tmp_path / "never"))


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(f"a\n{TEXTS['no-device']}"))
    writer.start()
    assert read(whole(str(pipe))).saw("no-device")
    writer.join()


def test_an_endless_line_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("x" * 20_000_000)
    assert max(len(line) for piece in pieces_of(str(path)) for line in piece.split("\n")) <= 1 << 16
