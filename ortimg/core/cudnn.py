"""Images without cuDNN: a release that loads it only when it uses it comes up without.

Which releases do is a fact of the catalogue (`dlopened`). That a convolution then fails, not the start, is
inferred from https://github.com/microsoft/onnxruntime/pull/29252; the start is what the tier `load` shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it imports this module
    from ortimg.core.model import CudaSet

NO_CUDNN = "none"  # on the axis `cudnn`
CAUTION = "Conv not available"


def is_cudnn(library: str) -> bool:
    """Whether a SONAME is cuDNN's or that of one of its parts."""
    return library.startswith("libcudnn")


def without_cudnn(cuda_set: CudaSet) -> str | None:
    """What an image without cuDNN cannot do; None where it has it."""
    if cuda_set.cudnn != NO_CUDNN:
        return None
    return f"{CAUTION}: there is no cuDNN, and models that need it fail when they run"
