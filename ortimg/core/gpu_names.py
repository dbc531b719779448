"""GPUs by the names that people and nvidia-smi use.

Names are compared by their telling words: "NVIDIA A100-SXM4-80GB", "Tesla A100" and "A100" are one GPU.
"""

from __future__ import annotations

import difflib
import re

import msgspec

from ortimg.core.gpu import Capability, read_capability
from ortimg.core.host_facts import HostFacts
from ortimg.core.problems import quote
from ortimg.errors import ConfigError

# Vendor, brand and form factor. "Quadro" and "GTX" tell GPUs apart (Quadro RTX 6000 and RTX 6000 Ada) and
# stay.
_WORDS = {"nvidia", "corporation", "tesla", "geforce", "graphics", "gpu", "generation", "grid", "super"}
_WORDS |= {"laptop", "mobile", "with", "max", "q", "design", "workstation", "server", "edition"}
_WORDS |= {"pcie", "pci", "e", "nvl", "nvgpu"}
_FORM = re.compile(r"sxm[0-9]*|hbm[0-9]*e?|[0-9]+gb?|[0-9]+[abcq]|dgxs|fhhl")
_MIG = re.compile(r"\bmig\b.*", re.IGNORECASE)


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU, or all of one compute capability."""

    name: str | None  # None: only the compute capability is told
    capability: Capability
    arm64: bool = False  # comes with an Arm processor

    def __str__(self) -> str:
        plain = f"compute capability {self.capability}"
        return plain if self.name is None else f"{self.name} ({plain})"


def key_of(name: str) -> str:
    """The telling words of a GPU's name, in small letters and without blanks: `rtx4090`."""
    words = re.split(r"[^a-z0-9]+", _MIG.sub("", name.lower()))
    return "".join(word for word in words if word and word not in _WORDS and not _FORM.fullmatch(word))


def _flat(capability: Capability) -> int:
    return capability.major * 10 + capability.minor


class GpuNames:
    """The names of gpus.yaml."""

    def __init__(self, facts: HostFacts) -> None:
        self._known: dict[str, Gpu] = {}
        self._capabilities: dict[Capability, bool] = {}  # whether every GPU of it comes with an Arm processor
        for row in facts.gpus:
            capability = read_capability(row.capability)
            if capability is None:
                raise ConfigError(f"catalogue gpus.yaml: {quote(row.capability)} is no compute capability")
            self._capabilities[capability] = not row.names
            for names, arm64 in ((row.names, False), (row.more, False), (row.arm64, True)):
                for name in names:
                    self._known[key_of(name)] = Gpu(name=name, capability=capability, arm64=arm64)
        for architecture in facts.drivers.architectures:
            for text in architecture.capabilities:
                if (capability := read_capability(text)) is not None:
                    self._capabilities.setdefault(capability, False)

    def find(self, text: str) -> Gpu:
        """The GPU that `text` names: "Tesla T4", "8.9", "sm_90". Raises ConfigError with near names."""
        if (capability := read_capability(text)) is not None:
            if capability not in self._capabilities:
                known = sorted(self._capabilities)
                nearest = sorted(known, key=lambda other: abs(_flat(other) - _flat(capability)))[:4]
                near = ", ".join(str(other) for other in sorted(nearest))
                raise ConfigError(f"no GPU of compute capability {capability} is known; near: {near}")
            return Gpu(name=None, capability=capability, arm64=self._capabilities[capability])
        key = key_of(text)
        if found := self._known.get(key):
            return found
        raise ConfigError(
            f"no GPU {quote(text)} is known{self._near(key)}",
            hint="A compute capability does too: `nvidia-smi --query-gpu=compute_cap --format=csv` tells it.",
        )

    def named(self, name: str, capability: Capability | None, arm64: bool = False) -> Gpu:
        """A GPU of this host, whose capability its own driver told (or None: look it up)."""
        if capability is not None:
            return Gpu(name=name, capability=capability, arm64=arm64)
        found = self.find(name)
        return Gpu(name=name, capability=found.capability, arm64=found.arm64 or arm64)

    def _near(self, key: str) -> str:
        within = [gpu.name for known, gpu in self._known.items() if len(key) > 1 and key in known]
        close = difflib.get_close_matches(key, self._known, n=3, cutoff=0.5)
        names = dict.fromkeys([*within[:3], *(self._known[word].name for word in close)])
        return f"; near: {', '.join(str(name) for name in [*names][:4])}" if names else ""
