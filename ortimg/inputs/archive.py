"""What a release archive must hold: checked on every archive before it is used, pinned or not.

An archive can be wrong under its right name: CUDA 11 libraries in a CUDA 12 file
(https://github.com/microsoft/onnxruntime/issues/22703), or the CPU archive in the GPU archive's place.
"""

from __future__ import annotations

import re
import shutil
import tarfile
from pathlib import Path, PurePosixPath

import msgspec
from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

from ortimg.core.model import OrtRelease
from ortimg.inputs.download import WrongFile

PROVIDER = "libonnxruntime_providers_cuda.so"
BRIDGE = "libonnxruntime_providers_shared.so"
# The number in these SONAMEs is the CUDA major; libcurand stays at 10, libcufft counts otherwise.
_CUDA_MAJOR = re.compile(r"lib(?:cublas|cublasLt)\.so\.(\d+)$")
_CUDNN_MAJOR = re.compile(r"libcudnn(?:_\w+)?\.so\.(\d+)$")


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What was found in an archive."""

    top_folder: str
    version: str | None
    commit: str | None
    needed: tuple[str, ...]  # NEEDED of the CUDA provider


def check_archive(path: Path, release: OrtRelease, workdir: Path, what: str) -> Contents:
    """Read the archive once, as a stream, and check it against its catalogue row.

    `workdir` takes the CUDA provider for a moment; `what` names the archive in messages. Raises `WrongFile`.
    """
    tops: set[str] = set()
    files: set[str] = set()
    texts: dict[str, str] = {}
    provider = workdir / PROVIDER
    try:
        with tarfile.open(path, "r|gz") as archive:
            for member in archive:
                parts = PurePosixPath(member.name).parts
                parts = parts[1:] if parts[:1] == (".",) else parts
                if not parts:
                    continue
                if member.name.startswith("/") or ".." in parts:
                    raise WrongFile(f"{what}: holds an unsafe path: {member.name}")
                tops.add(parts[0])
                inner = "/".join(parts[1:])
                files.add(inner)
                if not member.isreg():
                    continue
                source = archive.extractfile(member)
                if source is not None and inner in ("VERSION_NUMBER", "GIT_COMMIT_ID"):
                    texts[inner] = source.read(200).decode(errors="replace").strip()
                elif source is not None and inner == f"lib/{PROVIDER}":
                    with provider.open("wb") as target:
                        shutil.copyfileobj(source, target, 1 << 20)
    except (tarfile.TarError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk, not the archive
        raise WrongFile(f"{what}: not a whole .tgz archive ({error})") from error
    if len(tops) != 1:
        raise WrongFile(f"{what}: one top folder expected, found {', '.join(sorted(tops)) or 'nothing'}")
    check_files(files, release, what)
    if texts.get("VERSION_NUMBER") != release.version:
        raise WrongFile(
            f"{what}: VERSION_NUMBER says {texts.get('VERSION_NUMBER')}, expected {release.version}"
        )
    check_commit(texts.get("GIT_COMMIT_ID"), release, what)
    needed = check_provider(provider, release, what)
    return Contents(
        top_folder=tops.pop(),
        version=texts["VERSION_NUMBER"],
        commit=texts.get("GIT_COMMIT_ID"),
        needed=needed,
    )


def check_files(files: set[str], release: OrtRelease, what: str) -> None:
    """The libraries of a GPU archive are there, in whatever order."""
    present = {name.removeprefix("lib/") for name in files if name.startswith("lib/")}
    if not any(name.startswith("libonnxruntime.so") for name in present):
        raise WrongFile(f"{what}: libonnxruntime.so is not in it")
    if PROVIDER not in present:
        raise WrongFile(
            f"{what}: this is the CPU archive ({PROVIDER} is not in it)",
            f"the GPU archive is called {release.asset}",
        )
    if BRIDGE not in present:
        raise WrongFile(f"{what}: {BRIDGE} is not in it; without it no GPU provider can be loaded")


def check_commit(commit: str | None, release: OrtRelease, what: str) -> None:
    """The commit, where both sides name one."""
    if commit and release.git_commit and commit.lower() != release.git_commit.lower():
        raise WrongFile(f"{what}: built from commit {commit}, the release is {release.git_commit}")


def check_provider(path: Path, release: OrtRelease, what: str) -> tuple[str, ...]:
    """NEEDED of the CUDA provider; its CUDA and cuDNN majors must be those of the catalogue row."""
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            if elf["e_machine"] != "EM_X86_64":
                raise WrongFile(f"{what}: {PROVIDER} is for {elf['e_machine']}, not for x86-64")
            dynamic = elf.get_section_by_name(".dynamic")
            if not isinstance(dynamic, DynamicSection):
                raise WrongFile(f"{what}: {PROVIDER} is not a shared library")
            tags = [tag for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_NEEDED"]
            needed = tuple(str(getattr(tag, "needed")) for tag in tags)  # noqa: B009 - set by pyelftools at run time
    except ELFError as error:
        raise WrongFile(f"{what}: {PROVIDER} is not an ELF file ({error})") from error
    for pattern, major, name in (
        (_CUDA_MAJOR, release.cuda_major, "CUDA"),
        (_CUDNN_MAJOR, release.cudnn_major, "cuDNN"),
    ):
        for library in needed:
            if (match := pattern.fullmatch(library)) and int(match[1]) != major:
                raise WrongFile(f"{what}: {PROVIDER} needs {library}, expected {name} {major}")
    if not any(_CUDA_MAJOR.fullmatch(library) for library in needed):
        raise WrongFile(f"{what}: {PROVIDER} needs no cuBLAS: not a CUDA build")
    return needed
