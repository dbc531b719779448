"""What else differs: the version, other copies of it, glibc, Python packages, size, and the user's model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ortimg.core.compare_model import Finding, Side, Source, fail, ok, skipped, told, warning
from ortimg.core.onnx_support import Known, OnnxRow, Stamp, support
from ortimg.core.python_packages import GPU_PACKAGE, clash
from ortimg.core.versions import at_least, is_version, number

_PACKAGE = re.compile(r"(?P<name>.+?)-(?P<version>[^-]+)\.(?:dist|egg)-info")
_CPU_PACKAGES = {"onnxruntime", "ort-nightly"}


def version_findings(old: Side, new: Side) -> Iterator[Finding]:
    """The versions, whether this is a step back, and what stands in the way of reading them."""
    for label, side in (("OLD", old), ("NEW", new)):
        for text in side.notes:
            yield ok("chosen", f"{label}: {text}")
        for text in side.broken:
            yield fail("files", f"{label}: {text}", "build or unpack it again: this file cannot be loaded")
        if side.other_orts:
            yield (fail if label == "NEW" else warning)(
                "files",
                f"{label} holds more than one ONNX Runtime, this compares {side.ort}; "
                f"also {told(side.other_orts)}",
                "keep one on the loader's path: /opt/onnxruntime/current",
            )
        if "archive" in side.inferred:
            yield skipped("archive", f"{label}: nobody has seen this archive, its name is inferred")
    if old.ort is None or new.ort is None:
        yield skipped("ort", f"the version of {'OLD' if old.ort is None else 'NEW'} is not known")
    elif old.ort == new.ort:
        yield ok("ort", f"ONNX Runtime {new.ort} on both sides")
    else:
        back = is_version(old.ort) and is_version(new.ort) and number(new.ort) < number(old.ort)
        yield ok("ort", f"ONNX Runtime {old.ort} → {new.ort}{', a step back' if back else ''}")


def system_findings(old: Side, new: Side) -> Iterator[Finding]:
    """glibc and size."""
    if old.glibc and new.glibc:
        text = f"the libraries need glibc {old.glibc} → {new.glibc}"
        if at_least(old.glibc, new.glibc):
            yield ok("glibc", f"the libraries need glibc {new.glibc}, no more than before")
        elif new.source is Source.CATALOGUE and not new.brings_cuda:
            yield fail("glibc", text, f"have a base with glibc {new.glibc} or newer (`ldd --version` tells)")
        else:
            yield warning("glibc", text)
    yield _size(old, new)


def _size(old: Side, new: Side) -> Finding:
    if old.size is None or new.size is None or old.size_of != new.size_of:
        return skipped("size", "sizes are not known of both sides: compare images or roots")
    return ok("size", f"{new.size_of}: {_mb(old.size)} → {_mb(new.size)} ({_percent(old.size, new.size)})")


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _percent(old: int, new: int) -> str:
    return f"{(new - old) / old * 100:+.0f} %" if old else "from nothing"


def python_findings(old: Side, new: Side) -> Iterator[Finding]:
    """Python packages of ONNX Runtime, and NumPy, whose major version decides whether modules load."""
    if new.packages is None and old.packages is None:
        return
    was, now = _packages(old), _packages(new)
    ours = sorted(name for name in {*was, *now} if "onnxruntime" in name or name.startswith("ort-nightly"))
    if not ours:
        return
    if reason := clash(new.packages or ()):
        what, _, cure = reason.partition(": ")
        yield fail("python", f"NEW: {what}", cure)
    elif any(name in now for name in _CPU_PACKAGES) and not any(
        "gpu" in name for name in now if name in ours
    ):
        name = next(name for name in now if name in _CPU_PACKAGES)
        yield fail("python", f"NEW has {name} {now[name]}, the CPU package", f"install {GPU_PACKAGE} instead")
    for name in (*ours, "numpy"):
        a, b = was.get(name), now.get(name)
        if a is None and b is None:
            continue
        text = f"{name} {a or 'absent'} → {b or 'absent'}"
        if a == b:
            yield ok("python", f"{name} {b} on both sides")
        elif b is None and name != "numpy":
            yield fail("python", text, f"install {name}, or stay")
        elif name == "numpy" and a and b and a.split(".")[0] != b.split(".")[0]:
            yield warning("python", text, "compiled modules of yours must be made for this NumPy")
        else:
            yield warning("python", text)


def _packages(side: Side) -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in side.packages or ():
        if match := _PACKAGE.fullmatch(folder):
            found[re.sub(r"[-_.]+", "-", match["name"]).lower()] = match["version"]
    return found


def model_findings(
    old: Side, new: Side, model: str, stamp: Stamp, rows: Sequence[OnnxRow]
) -> Iterator[Finding]:
    """Whether each side knows the model, by its stamps alone."""
    for label, side in (("old", old), ("new", new)):
        check = f"model.{label}"
        if side.ort is None or not is_version(side.ort):
            yield skipped(check, f"the version of {label.upper()} is not known")
            continue
        answer = support(side.ort, stamp, rows)
        if answer.known is Known.YES:
            yield ok(
                check, f"ONNX Runtime {side.ort} knows {model} (IR version {stamp.ir}, {_opsets(stamp)})"
            )
        elif answer.known is Known.UNKNOWN:
            yield skipped(
                check, f"{model}: {'; '.join(answer.reasons)}", "run it: --model on images or roots does"
            )
        elif label == "new":
            cure = "export the model with an older opset and IR version, or take a newer ONNX Runtime"
            yield fail(check, f"{model}: {'; '.join(answer.reasons)}", cure)
        else:
            yield warning(check, f"{model}: {'; '.join(answer.reasons)}")


def _opsets(stamp: Stamp) -> str:
    return ", ".join(f"{domain or 'opset'} {version}" for domain, version in sorted(stamp.opsets.items()))
