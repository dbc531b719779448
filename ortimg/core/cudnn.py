"""Images without cuDNN: a release that loads it only when it uses it comes up without.

Which releases do is a fact of the catalogue (`dlopened`). That a convolution then fails, not the start, is
inferred from https://github.com/microsoft/onnxruntime/pull/29252; the start is what the tier `load` shows.
"""

from __future__ import annotations

NO_CUDNN = "none"  # on the axis `cudnn`
CAUTION = "Conv not available"


def is_cudnn(library: str) -> bool:
    """Whether a SONAME is cuDNN's or that of one of its parts."""
    return library.startswith("libcudnn")
