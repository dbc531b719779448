"""Reading facts out of libraries: small ones made by cc, and fat binaries made by hand."""

from __future__ import annotations

import io
import shutil
import struct
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from wishes import INDEX

from ortimg.core.model import Confidence
from ortimg.measure.elf import NotALibraryError, opened_by_name, read_library
from ortimg.measure.fatbin import lz4_head, read_gpu_code, summary
from ortimg.measure.ort import NotAnArchiveError, differences, measure

SPECIFIC, LZ4, ZSTD = 0x100000, 0x2000, 0x8000
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


# fat binaries


def entry(kind: int, sm: int, contents: bytes, flags: int = 0x11, isa: tuple[int, int] = (8, 2)) -> bytes:
    unpacked, packed = len(contents), 0
    if flags & LZ4:  # literals only: a token of 15 and the rest of the length
        rest = unpacked - 15
        contents = bytes([0xF0]) + b"\xff" * (rest // 255) + bytes([rest % 255]) + contents
        packed = len(contents)
    elif flags & ZSTD:
        contents = zstandard.compress(contents)
        packed = len(contents)
    header = struct.pack(
        "<HHIQIIHHIIIQQQ",
        *(kind, 0x101, 64, len(contents), packed, 0, isa[1], isa[0], sm, 0, 0, flags, 0, unpacked),
    )
    return header + contents


def container(*parts: bytes) -> bytes:
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(b"".join(parts))) + b"".join(parts)


def ptx(target: str, size: int = 6000) -> bytes:
    text = f".version 8.2\n.target sm_{target}\n.address_size 64\n.visible .entry k()\n{{ ret; }}\n"
    return text.encode().ljust(size, b"\n")


CUBIN = b"\x7fELF".ljust(6000, b"\1")


def test_machine_and_portable_code() -> None:
    data = b"junk" + container(entry(2, 75, CUBIN), entry(1, 80, ptx("80"), isa=(7, 8))) + b"\0" * 7
    data += container(entry(2, 120, CUBIN), entry(2, 90, CUBIN, 0x11 | SPECIFIC))
    found = summary(data)
    assert found.sass == ("75", "90a", "120")
    assert found.ptx == ("80",)
    assert found.ptx_isa == "7.8"
    assert found.confidence is Confidence.MEASURED


@pytest.mark.parametrize("flags", [0x11, 0x11 | LZ4, 0x11 | ZSTD])
def test_the_text_of_ptx_tells_90_from_90a(flags: int) -> None:
    data = container(entry(1, 90, ptx("90"), flags), entry(1, 90, ptx("90a"), flags))
    assert summary(data).ptx == ("90", "90a")
    assert summary(container(entry(1, 90, ptx("90a"), flags))).ptx == ("90a",)


def test_shells_without_a_function_do_not_count() -> None:
    shell = b".version 7.8\n.target sm_90\n.address_size 64\n\n"
    data = container(entry(1, 90, shell), entry(2, 52, b"\x7fELF" + b"\0" * 800), entry(2, 80, CUBIN))
    assert summary(data).sass == ("80",)
    assert summary(data).ptx == ()
    small = container(entry(2, 75, b"\x7fELF.text.kernel" + b"\0" * 800), entry(1, 75, ptx("75", 200)))
    assert (summary(small).sass, summary(small).ptx) == (("75",), ("75",))


def test_other_kinds_and_chance_hits() -> None:
    chance = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 60) + struct.pack("<IHHQ", 0xBA55ED50, 7, 16, 0)
    data = chance + container(entry(64, 99, b"?" * 100), entry(2, 80, CUBIN)) + b"\x50\xed\x55\xba"
    assert summary(data).sass == ("80",)
    assert summary(b"").sass == ()


def test_ptx_without_a_target_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"without a \.target line"):
        summary(container(entry(1, 90, b".entry".ljust(6000, b" "))))


@given(st.binary(min_size=20, max_size=2000), st.integers(1, 400))
def test_lz4_literals(contents: bytes, length: int) -> None:
    rest = len(contents) - 15
    packed = bytes([0xF0]) + b"\xff" * (rest // 255) + bytes([rest % 255]) + contents
    assert lz4_head(packed, length)[:length] == contents[:length]


def test_lz4_repeats() -> None:
    # "ab", then 10 bytes from 2 back, then "c"
    assert lz4_head(bytes([0x26]) + b"ab" + bytes([2, 0]) + bytes([0x10]) + b"c", 100) == b"ab" * 6 + b"c"
    with pytest.raises(ValueError, match="damaged"):
        lz4_head(bytes([0x10]) + b"a" + bytes([9, 0]), 100)


@given(st.binary(max_size=500))
def test_noise_does_no_harm(noise: bytes) -> None:
    assert summary(noise).sass == ()


# libraries made by cc


def build(path: Path, source: str, *options: str) -> Path:
    code = path.with_suffix(".c")
    code.write_text(source)
    command = ["cc", "-shared", "-fPIC", "-nostartfiles", "-o", str(path), str(code), *options]
    subprocess.run(command, check=True, capture_output=True)
    return path


@pytest.fixture
def newer_libc(tmp_path: Path) -> Path:
    """A C library that offers a symbol of GLIBC_2.38 and one of GLIBC_2.4."""
    script = tmp_path / "map"
    script.write_text("GLIBC_2.4 { global: old_one; };\nGLIBC_2.38 { global: new_one; };\n")
    options = ("-nostdlib", f"-Wl,--version-script={script}", "-Wl,-soname,libc.so.6")
    return build(tmp_path / "libnewer.so", "void old_one(void){} void new_one(void){}", *options)


@needs_cc
def test_the_floor_of_glibc(tmp_path: Path, newer_libc: Path) -> None:
    source = "void old_one(void); void new_one(void); void f(void){old_one(); new_one();}"
    library = build(tmp_path / "libx.so", source, "-nostdlib", str(newer_libc), "-Wl,-soname,libx.so.3")
    found = read_library(library)
    assert found.glibc == "2.38", "as numbers, not as text"
    assert found.glibcxx is None
    assert found.soname == "libx.so.3"
    assert found.needed == ("libc.so.6",)
    assert found.run_path is None
    assert not found.executable_stack
    base = INDEX.bases["debian11"]
    assert base.glibc is not None and base.glibc < "2.38"


@needs_cc
def test_an_executable_stack(tmp_path: Path) -> None:
    library = build(tmp_path / "libx.so", "void f(void){}", "-nostdlib", "-Wl,-z,execstack")
    assert read_library(library).executable_stack
    assert not read_library(build(tmp_path / "liby.so", "void f(void){}", "-nostdlib")).executable_stack


@needs_cc
def test_run_paths_and_symbol_versions(tmp_path: Path) -> None:
    script = tmp_path / "map"
    script.write_text("VERS_1.17.3 { global: OrtGetApiBase; };\n")
    versioned = (f"-Wl,--version-script={script}", "-Wl,-soname,libonnxruntime.so.1.17.3")
    ort = build(tmp_path / "libort.so", "void OrtGetApiBase(void){}", "-nostdlib", *versioned)
    assert read_library(ort).defines == ("VERS_1.17.3",)
    source = "void OrtGetApiBase(void); void f(void){OrtGetApiBase();}"
    user = build(
        tmp_path / "libuser.so", source, "-nostdlib", str(ort), "-Wl,-rpath,/usr/local/cuda-11.8/lib:"
    )
    found = read_library(user)
    assert found.program_versions == ("VERS_1.17.3",)
    assert found.needed == ("libonnxruntime.so.1.17.3",)
    assert found.run_path == "/usr/local/cuda-11.8/lib:"


@needs_cc
def test_libraries_opened_by_name(tmp_path: Path) -> None:
    source = (
        'const char *a = "libcudnn.so.9"; const char *b = "libnvrtc.so.13x"; const char *c = "libfoo.so.1";'
    )
    assert opened_by_name(build(tmp_path / "libx.so", source, "-nostdlib")) == ("libcudnn.so.9",)


def test_no_library(tmp_path: Path) -> None:
    path = tmp_path / "x.so"
    path.write_bytes(b"<html>")
    with pytest.raises(NotALibraryError, match=r"x\.so is not an ELF file"):
        read_library(path)


# whole archives


@pytest.fixture
def libraries(tmp_path: Path) -> dict[str, bytes]:
    folder = tmp_path / "libraries"
    folder.mkdir()
    core = build(folder / "core.so", "void f(void){}", "-nostdlib", "-Wl,-soname,libonnxruntime.so.1.16.2")
    cublas = build(folder / "cublas.so", "void g(void){}", "-nostdlib", "-Wl,-soname,libcublas.so.11")
    source = "void g(void); void h(void){g();}"
    provider = build(folder / "provider.so", source, "-nostdlib", str(cublas))
    bridge = build(folder / "bridge.so", "void f(void){}", "-nostdlib")
    code = container(entry(2, 75, CUBIN), entry(1, 80, ptx("80"), isa=(7, 8)))
    return {
        "libonnxruntime.so.1.16.2": core.read_bytes(),
        "libonnxruntime_providers_cuda.so": provider.read_bytes() + code,
        "libonnxruntime_providers_shared.so": bridge.read_bytes(),
    }


@needs_cc
def test_a_release_archive(tmp_path: Path, libraries: dict[str, bytes]) -> None:
    path = tmp_path / "x.tgz"
    files = {f"lib/{name}": data for name, data in libraries.items()}
    files |= {"VERSION_NUMBER": b"1.16.2\n", "include/onnxruntime_c_api.h": b"", "lib/cmake/x.cmake": b""}
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(f"./onnxruntime-linux-x64-gpu-1.16.2/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("./onnxruntime-linux-x64-gpu-1.16.2/lib/libonnxruntime.so")
        link.type, link.linkname = tarfile.SYMTYPE, "libonnxruntime.so.1.16.2"
        archive.addfile(link)
    found = measure(path, tmp_path)
    assert found.top_folder == "onnxruntime-linux-x64-gpu-1.16.2"
    assert found.version == "1.16.2"
    assert found.soname == "libonnxruntime.so.1.16.2"
    assert found.links == ("libonnxruntime.so -> libonnxruntime.so.1.16.2",)
    assert found.needed == ("libcublas.so.11",)
    assert (found.headers, found.cmake, found.pkg_config) == (True, True, False)
    assert (found.gpu.sass, found.gpu.ptx, found.gpu.ptx_isa) == (("75",), ("80",), "7.8")
    row = INDEX.release("1.16.2", 11)
    assert row is not None
    told = differences(row, found)
    assert any(text.startswith("needed: the row says") for text in told)
    assert any(text.startswith("gpu.sass: the row says") for text in told)
    assert not any(text.startswith(("soname", "top_folder", "version")) for text in told)


@needs_cc
@pytest.mark.parametrize("folder", ["ai/onnxruntime/native/linux-x64/", "onnxruntime/capi/"])
def test_a_jar_and_a_wheel(tmp_path: Path, libraries: dict[str, bytes], folder: str) -> None:
    path = tmp_path / "x.jar"
    with zipfile.ZipFile(path, "w") as package:
        for name, data in libraries.items():
            package.writestr(f"{folder}{name}", data)
        package.writestr("ai/onnxruntime/native/win-x64/onnxruntime.dll", b"x")
    found = measure(path, tmp_path)
    assert found.top_folder is None
    assert found.needed == ("libcublas.so.11",)
    assert not found.headers


def test_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "x.whl"
    with zipfile.ZipFile(path, "w") as package:
        package.writestr("onnxruntime/capi/nothing.so", b"")
    with pytest.raises(NotAnArchiveError, match="not both in it"):
        measure(path, tmp_path)


@needs_cc
def test_a_library_without_gpu_code(tmp_path: Path) -> None:
    assert read_gpu_code(build(tmp_path / "libx.so", "void f(void){}", "-nostdlib")).sass == ()
