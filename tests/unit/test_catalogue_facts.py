"""Every release: what hurts about it, how its files lie, how sure that is."""

from __future__ import annotations

import pytest
from packaging.version import Version
from wishes import CATALOGUE, INDEX

from ortimg.core.gpu import Capability, Match, architecture, match
from ortimg.core.model import Confidence, OrtRelease


def release(version: str, major: int) -> OrtRelease:
    row = INDEX.release(version, major)
    assert row is not None
    return row


@pytest.mark.parametrize(
    ("version", "major", "words"),
    [
        ("1.19.0", 11, "probably built with CUDA 11.8 (microsoft/onnxruntime#21965)"),
        ("1.20.0", 12, "replaced in place on 2024-11-04"),
        ("1.20.1", 12, "one undated note shows CUDA 11 libraries"),
        ("1.21.0", 12, "first upload had CUDA 11 libraries"),
        ("1.21.1", 11, "shipped with CUDA 11 dependencies (microsoft/onnxruntime#24520)"),
        ("1.23.0", 12, "no code for compute capability above 9.0"),
        ("1.16.2", 11, "searches the current directory"),
        ("1.30.0", 13, "no portable code"),
    ],
)
def test_known_faults(version: str, major: int, words: str) -> None:
    assert words in " ".join(str(fault) for fault in release(version, major).faults)


def test_faults_agree_with_the_gpu_code() -> None:
    blackwell = (Capability(10, 0), Capability(12, 0))
    assert [match(release("1.23.0", 12).gpu, gpu) for gpu in blackwell] == [Match.NONE, Match.NONE]
    assert [match(release("1.23.2", 12).gpu, gpu) for gpu in blackwell] == [Match.JIT, Match.JIT]
    for row in CATALOGUE.releases:
        told = any(
            "no portable code:" in str(fault) or "no portable code," in str(fault) for fault in row.faults
        )
        assert told == (not row.gpu.ptx), row.key


def test_archives_that_were_replaced_have_no_trusted_hash() -> None:
    for version, major in (("1.20.0", 12), ("1.21.0", 12)):
        assert release(version, major).sha256 is None


def test_layouts() -> None:
    for row in CATALOGUE.releases:
        assert row.layout is not None
        layout = INDEX.layouts[row.layout]
        version = Version(row.version)
        assert row.layout == ("A" if version < Version("1.19") else "B" if version < Version("1.27") else "C")
        ends = {link.format(version=row.version).partition(" -> ")[2] for link in layout.links}
        assert row.soname in ends, "the links lead to the SONAME"
        if row.top_folder is not None:
            wanted = layout.top_folder.replace("<major>", str(row.cuda_major)).format(version=row.version)
            assert row.top_folder == wanted, row.key
    old, new = INDEX.layouts["A"], INDEX.layouts["B"]
    assert (old.build_files, old.wrong_paths) == ((), ())
    assert new.wrong_paths == ("lib64", "include/onnxruntime")


def test_sizes_and_hashes_know_their_sources() -> None:
    sizes = [row.size for row in CATALOGUE.releases if row.size is not None]
    assert len(sizes) == len(set(sizes)) >= 10
    assert all(100_000_000 < size < 600_000_000 for size in sizes)
    known = [row for row in CATALOGUE.releases if row.sha256]
    assert len(known) == 39, "40 public hashes; that of 1.21.0 belongs to an unknown upload"
    assert len([row for row in known if row.sha256_sources >= 2]) == 26


def test_gpu_architectures_are_written_well() -> None:
    lists = [row.gpu for row in CATALOGUE.releases]
    lists += [row.wheel.gpu for row in CATALOGUE.releases if row.wheel and row.wheel.gpu]
    lists += [code for row in CATALOGUE.cuda_sets for code in row.gpu]
    for code in lists:
        for part in (code.sass, code.ptx):
            assert [*part] == sorted(part, key=architecture)
            assert len(set(part)) == len(part)
        assert code.confidence is not Confidence.UNKNOWN or not (code.sass or code.ptx)


def test_what_was_read_is_marked_so() -> None:
    read = {row.key for row in CATALOGUE.releases if row.abi_confidence is Confidence.MEASURED}
    assert read == {
        "1.16.2-cuda11",
        "1.16.3-cuda11",
        "1.17.1-cuda11",
        "1.18.0-cuda12",
        "1.22.0-cuda12",
        "1.23.2-cuda12",
    }
    assert {row.key for row in CATALOGUE.releases if row.gpu.ptx_isa} == read
