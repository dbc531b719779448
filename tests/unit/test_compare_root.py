"""Folders as sides: small libraries made by cc stand for ONNX Runtime and CUDA, in their real places."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ortimg.cli import cli
from ortimg.comparing.folder import read_folder
from ortimg.comparing.side import side_of
from ortimg.core.compare_model import Side, Source
from ortimg.data import read_catalogue
from ortimg.errors import CheckFailed

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
CUDA = "usr/local/cuda-12.2/lib64"
SETS = read_catalogue().cuda_sets


def cc(target: Path, source: str, *options: str) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-fPIC", "-w", "-x", "c", "-", "-x", "none", "-o", str(target), *options]
    subprocess.run(command, input=source, text=True, check=True, capture_output=True)
    return target


def library(target: Path, source: str, *options: str) -> Path:
    return cc(target, source, "-shared", "-nostdlib", *options)


def gpu_code(*architectures: int) -> str:
    """C for an array that holds a fat binary with machine code for these."""
    cubin = b"\x7fELF".ljust(5000, b"\1")
    entries = b"".join(
        struct.pack("<HHIQIIHHIIIQQQ", 2, 0x101, 64, len(cubin), 0, 0, 2, 8, sm, 0, 0, 0x11, 0, 0) + cubin
        for sm in architectures
    )
    data = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries
    return f"const unsigned char code[] = {{{','.join(map(str, data))}}};"


class Root:
    """A root with an ONNX Runtime in it."""

    def __init__(self, folder: Path, version: str = "1.20.1", soname: str = "libonnxruntime.so.1") -> None:
        self.folder, self.version, self.soname = folder, version, soname
        self.lib = folder / "opt" / "onnxruntime" / version / "lib"
        (folder / "usr").mkdir(parents=True, exist_ok=True)

    def core(self, *more: str) -> Root:
        names = ["OrtGetApiBase", *more]
        script = self.folder / "versions"
        script.write_text(f"VERS_{self.version} {{ global: {'; '.join(names)}; local: *; }};")
        source = "void OrtOutside(void);\n"  # a symbol that it takes from elsewhere
        source += "".join(f"void {name}(void) {{ OrtOutside(); }}\n" for name in (*names, "hidden"))
        real = self.lib / f"libonnxruntime.so.{self.version}"
        library(real, source, f"-Wl,-soname,{self.soname}", f"-Wl,--version-script={script}")
        script.unlink()
        if self.soname != real.name:
            (self.lib / self.soname).symlink_to(real.name)
        (self.lib / "libonnxruntime.so").symlink_to(self.soname)
        return self

    def provider(self, *needed: str, opens: str = "", code: tuple[int, ...] = (75, 80)) -> Root:
        paths = []
        for name in needed:
            source = f"void {name.split('.')[0]}(void) {{}}"
            paths.append(str(library(self.folder / CUDA / name, source, f"-Wl,-soname,{name}")))
        source = gpu_code(*code) + f'const char *opens(void) {{ return "{opens}"; }}'
        library(self.lib / "libonnxruntime_providers_cuda.so", source, "-Wl,--no-as-needed", *paths)
        return self

    def side(self) -> Side:
        return side_of(read_folder(self.folder), str(self.folder), Source.ROOT, SETS)


def whole(folder: Path, version: str = "1.20.1", soname: str = "libonnxruntime.so.1") -> Root:
    return (
        Root(folder, version, soname).core().provider("libcudart.so.12", "libcublas.so.12", "libcudnn.so.9")
    )


def compare(*words: str) -> Result:
    return CliRunner().invoke(cli, ["-C", "/nowhere", "compare", *words])


def checks(done: Result) -> dict[str, dict[str, Any]]:
    return {one["check"]: one for one in json.loads(done.stdout)["findings"]}


def test_what_is_read_in_a_root(tmp_path: Path) -> None:
    root = whole(tmp_path)
    library(tmp_path / CUDA / "libcublasLt.so.12", gpu_code(60, 90))
    (tmp_path / CUDA / "libcudart.so.12.2.140").symlink_to("libcudart.so.12")
    found = root.side()
    assert (found.ort, found.soname, found.symbols) == ("1.20.1", "libonnxruntime.so.1", "VERS_1.20.1")
    assert found.needed == ("libcudart.so.12", "libcublas.so.12", "libcudnn.so.9")
    assert (found.cuda, found.cudnn) == ("12.2", "9")
    assert found.exports == ("OrtGetApiBase",)
    assert found.gpu is not None and found.gpu.sass == ("75", "80")
    assert found.set_gpu is not None and [one.sass for one in found.set_gpu] == [("60", "90")]
    assert found.brings_cuda and found.has_cuda and not found.broken

    files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert found.size == sum(path.stat().st_size for path in files)


def test_names_that_stand_in_the_provider_are_libraries_that_it_opens(tmp_path: Path) -> None:
    """As they are called there: 1.28 and later hold `libcudnn.so`, and names of other CUDA majors."""
    root = (
        Root(tmp_path)
        .core()
        .provider("libcudart.so.12", opens=r"libcudnn.so\0libcudart.so.11.0\0libnvrtc.so.12\0")
    )
    library(tmp_path / CUDA / "libcudnn.so.9", "")
    assert root.side().lazy == ("libcudnn.so.9", "libnvrtc.so.12")
    manifest = tmp_path / "usr/share/ortimg/manifest.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(json.dumps({"ort": {"dlopened": ["libcufft.so.11"]}, "cuda": {"version": "12.6"}}))
    found = root.side()
    assert found.lazy == ("libcudnn.so.9", "libcufft.so.11", "libnvrtc.so.12")
    assert found.cuda == "12.6"
    manifest.write_text("[1")
    assert root.side().cuda == "12"


def test_the_current_one_of_two_counts_and_the_other_is_told(tmp_path: Path) -> None:
    whole(tmp_path, "1.18.0", "libonnxruntime.so.1.18.0")
    root = whole(tmp_path)
    current = tmp_path / "opt/onnxruntime/current"
    for version in ("1.18.0", "1.20.1"):
        current.unlink(missing_ok=True)
        current.symlink_to(version)
        found = root.side()
        assert found.ort == version
        assert found.other_orts == (f"/opt/onnxruntime/{'1.20.1' if version == '1.18.0' else '1.18.0'}/lib",)


def test_programs_inside_are_found(tmp_path: Path) -> None:
    old = whole(tmp_path / "old", "1.17.3", "libonnxruntime.so.1.17.3")
    new = whole(tmp_path / "new")
    source = "void OrtGetApiBase(void); void OrtOwn(void) { OrtGetApiBase(); }"
    library(new.folder / "app/serve", source, str(old.lib / "libonnxruntime.so"))
    library(new.folder / "app/free", 'const char *f(void) { return "libonnxruntime.so.1"; }')
    found = new.side()
    assert [one.path for one in found.programs] == ["/app/serve"]
    assert found.programs[0].imports == ("OrtGetApiBase",)
    done = compare(str(old.folder), str(new.folder), "--json")
    told = checks(done)["program"]
    assert (done.exit_code, told["verdict"]) == (1, "fail")
    assert told["evidence"].startswith("/app/serve: it links to libonnxruntime.so.1.17.3")


def test_a_root_against_itself_is_a_drop_in(tmp_path: Path) -> None:
    root = str(whole(tmp_path).folder)
    first, second = compare(root, root, "--json"), compare(root, root, "--json")
    assert (first.exit_code, first.stdout) == (0, second.stdout)
    assert {one["verdict"] for one in checks(first).values()} == {"ok", "skipped"}


def test_a_root_against_a_version(tmp_path: Path) -> None:
    done = compare("1.20.1", str(whole(tmp_path).folder), "--json")
    assert checks(done)["soname"]["evidence"] == "libonnxruntime.so.1 with symbols VERS_1.20.1 on both sides"
    assert checks(done)["size"]["verdict"] == "skipped"


def test_an_unpacked_archive_with_headers(tmp_path: Path) -> None:
    for name, functions in (("old", "A, int"), ("new", "B, int")):
        root = whole(tmp_path / name)
        archive = tmp_path / f"archive-{name}"
        root.lib.parent.rename(archive)
        (archive / "include").mkdir()
        header = f"#define ORT_API_VERSION 20\nstruct OrtApi {{ ORT_API2_STATUS({functions}); }};"
        (archive / "include/onnxruntime_c_api.h").write_text(header)
    done = compare(str(tmp_path / "archive-old"), str(tmp_path / "archive-new"), "--json")
    assert "gained B; lost A" in checks(done)["api.functions"]["evidence"]
    assert checks(done)["size"]["verdict"] == "ok"


def test_a_root_without_onnx_runtime(tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match="holds no ONNX Runtime"):
        side_of(read_folder(tmp_path), "x", Source.ROOT, ())
    done = compare(str(tmp_path), "1.20.1", "--json")
    assert (done.exit_code, done.stdout) == (1, "")


def test_a_cpu_only_onnx_runtime(tmp_path: Path) -> None:
    root = Root(tmp_path).core()
    done = compare("1.20.1", str(root.folder), "--json")
    assert checks(done)["provider"]["verdict"] == "fail"


@pytest.mark.parametrize("damage", [b"", b"\x7fELF", b"<html>", b"\x7fELF\x02\x01\x01" + b"\xff" * 4000])
def test_broken_libraries(tmp_path: Path, damage: bytes) -> None:
    root = whole(tmp_path)
    provider = root.lib / "libonnxruntime_providers_cuda.so"
    provider.write_bytes(damage)
    told = checks(compare("1.20.1", str(tmp_path), "--json"))
    assert told["files"]["verdict"] == "fail" and provider.name in told["files"]["evidence"]
    (root.lib / "libonnxruntime.so.1.20.1").write_bytes(damage)
    done = compare("1.20.1", str(tmp_path))
    assert done.exit_code == 1
    assert "cannot be read" in done.output and "Traceback" not in done.output


@pytest.mark.parametrize("share", range(1, 10))
def test_a_library_that_was_cut_anywhere(tmp_path: Path, share: int) -> None:
    root = whole(tmp_path)
    path = root.lib / "libonnxruntime_providers_cuda.so"
    path.write_bytes(path.read_bytes()[: path.stat().st_size * share // 10])
    assert root.side().broken or root.side().has_cuda  # told, or still readable; never an exception


def test_python_packages_and_their_onnx_runtime(tmp_path: Path) -> None:
    site = tmp_path / "usr/lib/python3/dist-packages"
    library(site / "onnxruntime/capi/onnxruntime_pybind11_state.cpython-311-x86_64-linux-gnu.so", "")
    root = Root(tmp_path)
    root.lib = site / "onnxruntime/capi"
    root.provider("libcudart.so.12")
    for name in ("onnxruntime_gpu-1.17.1", "numpy-1.26.4"):
        (site / f"{name}.dist-info").mkdir()
    found = root.side()
    assert (found.ort, found.has_library, found.has_cuda) == ("1.17.1", False, True)
    assert found.packages == ("numpy-1.26.4.dist-info", "onnxruntime_gpu-1.17.1.dist-info")
    root.core()  # as the wheel has it since 1.19
    assert not root.side().has_library


def test_odd_files_in_a_root(tmp_path: Path) -> None:
    """Sockets, pipes, links in a circle, names that are no text, a folder that may not be entered."""
    root = whole(tmp_path)
    import os

    os.mkfifo(tmp_path / "usr/pipe.so")
    (tmp_path / "usr/circle").symlink_to("circle")
    (tmp_path / "usr/away").symlink_to("/")
    Path(os.fsdecode(bytes(tmp_path) + b"/usr/\xff.so")).touch()
    (tmp_path / "usr/share/ortimg/manifest.json").mkdir(parents=True)
    hard = root.lib / "hard.so"
    hard.hardlink_to(root.lib / "libonnxruntime_providers_cuda.so")
    before = root.side().size
    hard.unlink()
    assert root.side().size == before  # one file, however many names
