"""The CUDA version that ONNX Runtime was built with, against that of the libraries it gets."""

from __future__ import annotations

from ortimg.core.model import CudaSet, OrtRelease
from ortimg.core.versions import at_least

# ONNX Runtime's documents: any minor version of the CUDA major does. A later edition: what was built with
# 12.8 needs libraries of 12.8 or newer.
# https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html#requirements
_DOUBTFUL = "12.8"


def older_set(release: OrtRelease, cuda_set: CudaSet) -> str | None:
    """What is not known of libraries older than the toolkit that the release was built with, or None."""
    built = release.cuda_build
    if built is None or at_least(cuda_set.cuda, built) or not at_least(built, _DOUBTFUL):
        return None
    return (
        f"ONNX Runtime {release.version} was built with CUDA {built}, and the set is CUDA {cuda_set.cuda}: "
        f"that any {cuda_set.major}.x does was documented, and later that {_DOUBTFUL} or newer is needed"
    )
