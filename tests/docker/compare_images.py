"""Images of real cells for the tests of `compare`, which reads them and changes nothing."""

from __future__ import annotations

from real import ortimg

from ortimg.engine.client import Engine


def real_image(engine: Engine, identifier: str) -> str:
    """The image of a cell, as it is; built where there is none."""
    reference = f"onnxruntime-gpu:{identifier}"
    if engine.inspect(reference) is None:
        done = ortimg("build", identifier)
        assert done.returncode == 0, done.stdout + done.stderr
    return reference
