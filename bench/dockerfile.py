"""The naive side's Dockerfile: one a cell, written by hand as people do. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ortimg.core.model import Cell

_ARCHIVE = """\
RUN mkdir -p /opt/onnxruntime \\
    && curl -fsSL {server}/{archive} -o /tmp/onnxruntime.tgz \\
    && tar -xzf /tmp/onnxruntime.tgz -C /opt/onnxruntime --strip-components=1 \\
    && rm /tmp/onnxruntime.tgz"""
_PIP = """\
RUN pip install --no-cache-dir --no-deps --no-index --find-links {server}/ \\
    --trusted-host 127.0.0.1 --target {target} \\
    {requirements}"""


def dockerfile(cell: Cell, archive: str | None, server: str, fetch: str, base: str) -> str:
    """`archive`: its name at `server`, where the wheels lie too; None: ONNX Runtime comes as a wheel.

    `fetch`: image with curl and pip, for the first stage; `base`: the distribution.
    """
    lines = [f"FROM {fetch} AS fetch"]
    copies = ["COPY --from=fetch /opt/cuda/nvidia /opt/nvidia"]
    folders = _folders(cell)
    if archive is not None:
        lines.append(_ARCHIVE.format(server=server, archive=archive))
        copies.insert(0, "COPY --from=fetch /opt/onnxruntime /opt/onnxruntime")
        folders.insert(0, "/opt/onnxruntime/lib")
    else:
        lines.append(_pip(server, "/opt/python", [wheel.requirement for wheel in cell.wheels]))
        copies.insert(0, "COPY --from=fetch /opt/python /opt/python")
    lines.append(_pip(server, "/opt/cuda", [wheel.requirement for wheel in cell.cuda_set.wheels]))
    lines += [f"FROM {base}", *copies, f"ENV LD_LIBRARY_PATH={':'.join(folders)}"]
    if archive is None:
        lines.append("ENV PYTHONPATH=/opt/python")
    lines.append("ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility")
    return "\n".join(lines) + "\n"


def _pip(server: str, target: str, requirements: Sequence[str]) -> str:
    return _PIP.format(server=server, target=target, requirements=" ".join(requirements))


def _folders(cell: Cell) -> list[str]:
    """Where NVIDIA's wheels put their libraries."""
    if cell.cuda_set.major >= 13:
        return ["/opt/nvidia/cu13/lib", "/opt/nvidia/cudnn/lib"]
    parts = [wheel.requirement.split("==")[0].split("-cu1")[0] for wheel in cell.cuda_set.wheels]
    return [f"/opt/nvidia/{part.removeprefix('nvidia-').replace('-', '_')}/lib" for part in parts]
