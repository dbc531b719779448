"""The fleet's tests share the registry of the tests on the engine."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "docker"))
