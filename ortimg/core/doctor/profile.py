"""Where the nodes of a model ran, from ONNX Runtime's own profile (SessionOptions.enable_profiling)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ortimg.core.doctor.findings import Found, fail, ok, warn
from ortimg.core.doctor.names import Check
from ortimg.errors import ConfigError

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
_COPIES = {"MemcpyFromHost", "MemcpyToHost"}
_SUFFIX = "_kernel_time"


@dataclass(frozen=True)
class Nodes:
    """Nodes of the model by provider; copies between host and GPU are counted apart."""

    providers: dict[str, str]  # node → provider
    operators: dict[str, str]  # node → operator
    copies: int
    cut: bool  # the profile has no end: the program died, or never ended the profile

    @property
    def cuda(self) -> int:
        return sum(provider == CUDA for provider in self.providers.values())


def read_profile(text: str) -> Nodes:
    """Raises ConfigError where the text is no profile of ONNX Runtime."""
    events, cut = _events(text)
    providers: dict[str, str] = {}
    operators: dict[str, str] = {}
    copies: set[str] = set()
    for event in events:
        args = event.get("args")
        name = event.get("name")
        if event.get("cat") != "Node" or not isinstance(args, dict) or not isinstance(name, str):
            continue
        provider, operator = args.get("provider"), str(args.get("op_name", "?"))
        if not provider or not name.endswith(_SUFFIX):
            continue
        node = f"{name.removesuffix(_SUFFIX)}#{args.get('node_index', '')}"  # names may be empty
        if operator in _COPIES:
            copies.add(node)
        else:
            providers[node], operators[node] = str(provider), operator
    if not providers:
        raise ConfigError(
            "no node of a model is in the profile",
            hint="Set enable_profiling, run the model at least once, and end the profile (end_profiling).",
        )
    return Nodes(providers, operators, len(copies), cut)


def _events(text: str) -> tuple[list[dict[str, Any]], bool]:
    try:
        whole = json.loads(text)
        cut = False
    except (json.JSONDecodeError, RecursionError):
        whole, cut = _lines(text), True
    if not isinstance(whole, list) or not any(isinstance(event, dict) for event in whole):
        raise ConfigError(
            "this is no profile of ONNX Runtime", hint="It is the JSON file that enable_profiling writes."
        )
    return [event for event in whole if isinstance(event, dict)], cut


def _lines(text: str) -> list[Any]:
    """A profile that was cut: one event a line, as it is written."""
    events: list[Any] = []
    for line in text.splitlines():
        try:
            events.append(json.loads(line.strip().lstrip("[").rstrip(",]")))
        except (json.JSONDecodeError, RecursionError):
            continue
    return events


def check_profile(nodes: Nodes, limit: float) -> Iterator[Found]:
    """Share of nodes on CUDA against `limit` (0 … 1)."""
    total = len(nodes.providers)
    share = nodes.cuda / total
    words = f"{nodes.cuda} of {total} nodes ran on CUDA ({share:.0%})"
    others = Counter(
        f"{nodes.operators[node]} ({provider.removesuffix('ExecutionProvider')})"
        for node, provider in nodes.providers.items()
        if provider != CUDA
    )
    listed = ", ".join(f"{count} {name}" if count > 1 else name for name, count in others.most_common(8))
    if others:
        words += f"; elsewhere: {listed}; {nodes.copies} copies between host and GPU"
    if share < limit:
        yield fail(Check.PROFILE_SHARE, words)
    else:
        yield ok(Check.PROFILE_SHARE, words)
    if nodes.cut:
        yield warn(
            Check.PROFILE_SHARE,
            "the profile has no end: the program died or hung, or did not end the profile",
            "call end_profiling, or end the session, before the program ends",
        )
