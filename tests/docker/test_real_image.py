"""The image of the real cell: what is in it, and that its verdict depends on nothing around it."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import IO, Any

import pytest
import zstandard
from elftools.elf.elffile import ELFFile
from real import ORT, RealCell, compile_library

from ortimg.engine.client import Engine, RunResult
from ortimg.inputs.cache import Cache
from ortimg.verify.binary import Verifier, get_verifier
from ortimg.verify.report import Report, Verdict, parse_report

pytestmark = [pytest.mark.engine, pytest.mark.inputs]

STUB = "/run/stub"
LOAD = ["ort-verify", "--tier", "load", "--stub", f"{STUB}/libcuda.so.1"]
ZSTD = b"\x28\xb5\x2f\xfd"  # RFC 8878, 3.1.1
LIMIT = 120  # seconds for a container


@pytest.fixture(scope="module")
def verifier() -> Verifier:
    return get_verifier(Cache.default().root)


@pytest.fixture(scope="module")
def layers(real_cell: RealCell) -> list[list[tarfile.TarInfo]]:
    """The files of each layer, lowest first, as `docker save` streams them; nothing is unpacked to disk."""
    command = ["docker", "save", real_cell.reference]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as save:
        assert save.stdout is not None
        found, manifest = read_image(save.stdout)
    assert save.returncode == 0
    return [found[name] for name in manifest]


def read_image(stream: IO[bytes]) -> tuple[dict[str, list[tarfile.TarInfo]], list[str]]:
    """Blob → its files, for each blob that is a tar; and the image's layers in order."""
    blobs: dict[str, list[tarfile.TarInfo]] = {}
    manifest: list[str] = []
    with tarfile.open(fileobj=stream, mode="r|") as image:
        for member in image:
            blob = image.extractfile(member)
            if blob is None:
                continue
            if member.name == "manifest.json":
                manifest = json.load(blob)[0]["Layers"]
            elif member.name.startswith("blobs/") and member.size:
                blobs[member.name] = files_of(io.BufferedReader(blob))  # type: ignore[arg-type]
    return blobs, manifest


def files_of(blob: io.BufferedReader) -> list[tarfile.TarInfo]:
    """The files of a layer, however it is packed; of a JSON document, none."""
    head = blob.peek(4)
    if head.startswith(b"{"):
        return []
    plain = zstandard.ZstdDecompressor().stream_reader(blob) if head.startswith(ZSTD) else blob
    with tarfile.open(fileobj=plain, mode="r|*") as layer:
        return list(layer)


def test_the_stub_is_in_no_layer(layers: list[list[tarfile.TarInfo]]) -> None:
    names = ["/" + member.name.lstrip("./") for layer in layers for member in layer]
    assert f"{ORT}/libonnxruntime_providers_cuda.so" in names  # the layers were really read
    assert "/usr/share/ortimg/verify.json" in names
    assert [name for name in names if "libcuda.so" in name or "cuda-stub" in name] == []


def test_the_layers_are_those_of_the_image(
    engine: Engine, real_cell: RealCell, layers: list[list[tarfile.TarInfo]]
) -> None:
    image = engine.inspect(real_cell.reference)
    assert image is not None
    assert len(layers) == len(image.layers)
    assert all(layers)


def test_files_belong_to_root_and_everybody_may_read_them(layers: list[list[tarfile.TarInfo]]) -> None:
    ours = (
        "opt/onnxruntime",
        "usr/local/cuda-11.8",
        "usr/share/ortimg",
        "usr/local/bin/ort-verify",
        "etc/ld.so",
    )
    seen = 0
    for layer in layers:
        for member in layer:
            name = member.name.lstrip("./")
            if not name.startswith(ours):
                continue
            seen += 1
            assert (member.uid, member.gid) == (0, 0), name
            readable = 0o555 if member.isdir() or name.endswith("ort-verify") else 0o444
            assert member.issym() or member.mode & readable == readable, f"{name}: {member.mode:o}"
            assert member.issym() or not member.mode & 0o022, f"{name}: {member.mode:o}"
    assert seen > 30


def test_no_package_manager_ran_in_the_final_stage(real_cell: RealCell) -> None:
    command = ["docker", "history", "--no-trunc", "--format", "{{json .CreatedBy}}", real_cell.reference]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    steps = [str(json.loads(line)) for line in shown.splitlines()]
    runs = [step for step in steps if step.startswith("RUN")]
    assert len(runs) == 3
    assert "manifest.json" in runs[2]
    assert "ldconfig" in runs[1]
    assert "ort-verify --tier load" in runs[0]


@pytest.fixture(scope="module")
def config(real_cell: RealCell) -> dict[str, Any]:
    command = ["docker", "image", "inspect", real_cell.reference]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, Any] = json.loads(shown)[0]["Config"]
    return found


def test_labels(config: dict[str, Any], real_cell: RealCell) -> None:
    labels = config["Labels"]
    identities = real_cell.image.identities
    expected = {
        "org.opencontainers.image.title": "ONNX Runtime GPU 1.16.2",
        "org.opencontainers.image.version": real_cell.image.cell.identifier,
        "org.opencontainers.image.base.name": "debian:12-slim",
        "ortimg.identifier": "1.16.2-cuda11.8-cudnn8-debian12",
        "ortimg.ort": "1.16.2",
        "ortimg.cuda": "11.8",
        "ortimg.cudnn": "8.9.6.50",
        "ortimg.base": "debian12",
        "ortimg.flavour": "runtime",
        "ortimg.tier": "load",
        "ortimg.origin": identities.label,
        "ortimg.content": real_cell.image.content,
    }
    assert {key: labels.get(key) for key in expected} == expected
    assert "Debian 12" in labels["org.opencontainers.image.description"]


def test_environment_command_and_user(config: dict[str, Any]) -> None:
    environment = dict(item.split("=", 1) for item in config["Env"])
    path = environment.pop("PATH").split(":")
    assert "/usr/local/bin" in path
    assert environment == {
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "CUDA_MODULE_LOADING": "LAZY",
    }
    assert config["Cmd"] == ["ort-verify", "--tier", "static"]
    assert not config.get("Entrypoint")
    assert config["User"] == ""


def test_report_and_labels_say_load_and_nothing_says_gpu(
    engine: Engine, real_cell: RealCell, config: dict[str, Any]
) -> None:
    shown = engine.run(real_cell.reference, ["cat", "/usr/share/ortimg/verify.json"], limit=LIMIT)
    report = parse_report(shown.stdout)
    assert report.tier == "load"
    assert report.verdict is Verdict.PASS
    assert report.target == real_cell.image.cell.identifier
    assert "hostname" not in shown.stdout
    said = (shown.stdout + json.dumps(config["Labels"])).lower()
    assert "verified on" not in said
    assert '"run"' not in said


def test_licences_and_links(engine: Engine, real_cell: RealCell) -> None:
    licences = "/usr/share/licenses"
    script = (
        f"cat {licences}/onnxruntime/LICENSE {licences}/onnxruntime/ThirdPartyNotices.txt | wc -c;"
        f"find {licences} -type f -size +0 | grep -v /onnxruntime/ | grep -c nvidia;"
        "readlink -f /usr/local/cuda-11.8/lib/libcudart.so.11.0;"
        "readlink -f /opt/onnxruntime/current/lib/libonnxruntime.so.1.16.2;"
        'echo "<${LD_LIBRARY_PATH-unset}>"; test ! -e /run/cuda-stub && echo gone'
    )
    shown = engine.run(real_cell.reference, ["sh", "-c", script], limit=LIMIT)
    notices, nvidia, *rest = shown.stdout.splitlines()
    assert int(notices) > 100_000
    assert int(nvidia) >= 5  # one for each wheel
    assert rest[0].startswith("/usr/local/cuda-11.8/lib64/libcudart.so.11")
    assert rest[1].startswith(f"{ORT}/libonnxruntime.so")
    assert rest[2:] == ["<unset>", "gone"]


# The verdict depends on nothing around the image.


def load(engine: Engine, real_cell: RealCell, verifier: Verifier, *prefix: str, **options: Any) -> RunResult:
    """`ort-verify --tier load` in a container; `options` are docker-py's."""
    volumes = {str(verifier.folder): {"bind": STUB, "mode": "ro"}, **options.pop("volumes", {})}
    return engine.run(real_cell.reference, [*prefix, *LOAD], limit=LIMIT, volumes=volumes, **options)


@pytest.fixture(scope="module")
def plain(engine: Engine, real_cell: RealCell, verifier: Verifier) -> Report:
    result = load(engine, real_cell, verifier)
    assert result.exit_code == 0, result.stderr
    return parse_report(result.stdout)


SURROUNDINGS: dict[str, dict[str, Any]] = {
    "any uid": {"user": "4242:4242"},
    "read-only root": {"read_only": True},
    "no HOME": {"environment": {"HOME": ""}},
    "no rights": {"cap_drop": ["ALL"], "security_opt": ["no-new-privileges"]},
    "cwd /proc": {"working_dir": "/proc"},
    "cwd lib folder": {"working_dir": ORT},
    "LD_LIBRARY_PATH of a venv": {"environment": {"LD_LIBRARY_PATH": "/opt/venv/lib"}},
    "another HOME and TMPDIR": {"environment": {"HOME": "/nonexistent", "TMPDIR": "/nonexistent"}},
    "all at once": {
        "user": "4242:4242",
        "read_only": True,
        "cap_drop": ["ALL"],
        "working_dir": "/proc",
        "environment": {"LD_LIBRARY_PATH": "/opt/venv/lib", "HOME": "/nonexistent"},
    },
}


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_the_report_is_the_same_everywhere(
    engine: Engine, real_cell: RealCell, verifier: Verifier, plain: Report, name: str
) -> None:
    result = load(engine, real_cell, verifier, **SURROUNDINGS[name])
    assert result.exit_code == 0, result.stderr
    assert parse_report(result.stdout) == plain


def test_an_empty_environment_gives_the_same_verdict(
    engine: Engine, real_cell: RealCell, verifier: Verifier, plain: Report
) -> None:
    """The NVIDIA variables are gone with it, which is told; nothing else changes."""
    command = ["env", "-i", "/usr/local/bin/ort-verify", *LOAD[1:]]
    volumes = {str(verifier.folder): {"bind": STUB, "mode": "ro"}}
    result = engine.run(real_cell.reference, command, limit=LIMIT, volumes=volumes, read_only=True)
    assert result.exit_code == 0, result.stderr
    report = parse_report(result.stdout)
    assert report.verdict is plain.verdict
    other = [finding.check for finding in report.findings if finding not in plain.findings]
    assert other == ["container.environment"]


# A hostile library in the working directory.

HOSTILE = r"""
#include <unistd.h>
__attribute__((constructor)) static void hostile(void) { write(2, "HOSTILE CODE RUNS\n", 18); _exit(99); }
"""


@pytest.fixture(scope="module")
def hostile(
    engine: Engine, real_cell: RealCell, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, str]]:
    """A folder with a libz.so.1 that has every function of the real one, as a mount at /work."""
    folder = tmp_path_factory.mktemp("hostile")
    script = "cp $(ldconfig -p | sed -n 's/.*libz.so.1 .*=> //p') /out/real"
    volumes = {str(folder): {"bind": "/out", "mode": "rw"}}
    assert engine.run(real_cell.reference, ["sh", "-c", script], limit=LIMIT, volumes=volumes).exit_code == 0
    with (folder / "real").open("rb") as stream:
        symbols = ELFFile(stream).get_section_by_name(".dynsym").iter_symbols()
        names = sorted(
            {
                symbol.name
                for symbol in symbols
                if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_value"]
            }
        )
    assert "inflate" in names
    source = HOSTILE + "\n".join(f"void {name}(void) {{}}" for name in names)
    compile_library(source, folder / "work" / "libz.so.1", "-Wl,-soname,libz.so.1", "-fno-builtin")
    return {str(folder / "work"): {"bind": "/work", "mode": "ro"}}


@pytest.fixture(scope="module")
def unrepaired(
    real_cell: RealCell, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, dict[str, str]]]:
    """The libraries as they come in the archive, as a mount over the repaired ones."""
    folder = tmp_path_factory.mktemp("unrepaired")
    command = ["tar", "-xzf", str(real_cell.archive), "--strip-components=2", "--wildcards", "*/lib/*"]
    subprocess.run(command, cwd=folder, check=True)
    yield {str(folder): {"bind": ORT, "mode": "ro"}}
    shutil.rmtree(folder)  # 420 MB


# The loader maps a library and runs its constructors before it starts the program: no ORT program is needed.
LIBRARIES = (f"{ORT}/libonnxruntime.so.1.16.2", f"{ORT}/libonnxruntime_providers_cuda.so")


def preloaded(engine: Engine, real_cell: RealCell, library: str, volumes: dict[str, Any]) -> RunResult:
    script = f"LD_DEBUG=libs LD_PRELOAD={library} exec /bin/true"
    return engine.run(
        real_cell.reference, ["sh", "-c", script], limit=LIMIT, volumes=volumes, working_dir="/work"
    )


def tried(result: RunResult) -> list[str]:
    """Files that the loader looked for, by its own word."""
    mark = "trying file="
    return [line.partition(mark)[2] for line in result.stderr.splitlines() if mark in line]


def from_the_working_directory(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith("/") or PurePosixPath(name).is_relative_to("/work")]


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: PurePosixPath(path).name)
def test_the_working_directory_is_not_searched(
    engine: Engine, real_cell: RealCell, hostile: dict[str, Any], library: str
) -> None:
    result = preloaded(engine, real_cell, library, hostile)
    assert len(tried(result)) > 3
    assert from_the_working_directory(tried(result)) == []
    assert "HOSTILE" not in result.stderr


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: PurePosixPath(path).name)
def test_the_unrepaired_files_do_search_it(
    engine: Engine, real_cell: RealCell, hostile: dict[str, Any], unrepaired: dict[str, Any], library: str
) -> None:
    result = preloaded(engine, real_cell, library, hostile | unrepaired)
    assert from_the_working_directory(tried(result))


def test_the_unrepaired_files_run_hostile_code(
    engine: Engine, real_cell: RealCell, hostile: dict[str, Any], unrepaired: dict[str, Any]
) -> None:
    """So the tests above can fail."""
    result = preloaded(engine, real_cell, LIBRARIES[0], hostile | unrepaired)
    assert "libz.so.1" in tried(result)
    assert "HOSTILE CODE RUNS" in result.stderr
    assert result.exit_code == 99


def test_the_verifier_passes_beside_a_hostile_library(
    engine: Engine, real_cell: RealCell, verifier: Verifier, plain: Report, hostile: dict[str, Any]
) -> None:
    result = load(engine, real_cell, verifier, working_dir="/work", volumes=hostile)
    assert result.exit_code == 0, result.stderr
    assert parse_report(result.stdout) == plain


def test_the_verifiers_own_loading_looks_nowhere_there(
    engine: Engine, real_cell: RealCell, verifier: Verifier, hostile: dict[str, Any]
) -> None:
    script = f"LD_DEBUG=libs LD_DEBUG_OUTPUT=/tmp/ld {' '.join(LOAD)} >/dev/null && cat /tmp/ld.* >&2"
    result = engine.run(
        real_cell.reference,
        ["sh", "-c", script],
        limit=LIMIT,
        working_dir="/work",
        volumes={str(verifier.folder): {"bind": STUB, "mode": "ro"}, **hostile},
    )
    assert result.exit_code == 0
    names = tried(result)
    assert any(name.endswith("/libcufft.so.10") for name in names) or "libcufft.so.10" in result.stderr
    assert from_the_working_directory(names) == []


def test_the_verifier_refuses_the_unrepaired_files(
    engine: Engine, real_cell: RealCell, verifier: Verifier, unrepaired: dict[str, Any]
) -> None:
    result = load(engine, real_cell, verifier, volumes=unrepaired)
    assert result.exit_code == 1
    evidence = {finding.check: finding.evidence for finding in parse_report(result.stdout).failures}
    assert set(evidence) == {"ort.runpath"}
    assert "searches the current directory" in evidence["ort.runpath"]
