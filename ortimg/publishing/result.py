"""What became of a push: cells, alias tags, bytes; and the file of digests. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from ortimg.errors import ExitCode

SCHEMA = 1


class Pushed(StrEnum):
    """What became of a cell in one repository."""

    PUSHED = "pushed"
    UNCHANGED = "unchanged"  # the registry has it, or another build of the same content
    FAILED = "failed"
    NOT_BUILT = "not-built"  # the engine has no such image
    REFUSED = "refused"  # its tier is lower than what was asked for


GOOD = frozenset({Pushed.PUSHED, Pushed.UNCHANGED})


class PushResult(msgspec.Struct, frozen=True, kw_only=True):
    """One cell in one repository; a row of `push --json`."""

    identifier: str
    repository: str  # "registry.example.com/team/onnxruntime-gpu"
    result: Pushed
    tier: str | None = None
    digest: str | None = None  # of what the registry has under the tag now
    aliases: tuple[str, ...] = ()  # further tags that stand on it now
    cause: str | None = None
    environment: bool = False  # a failure of network or registry, not of the image

    @property
    def pinned(self) -> str:
        """The image by its digest, as cosign and a careful deployment want it."""
        return f"{self.repository}@{self.digest}"

    def as_data(self) -> dict[str, object]:
        return {
            "identifier": self.identifier,
            "result": self.result.value,
            "image": f"{self.repository}:{self.identifier}",
            "tier": self.tier,
            "digest": self.digest,
            "aliases": [*self.aliases],
            "cause": self.cause,
        }


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of layers, by how they got there."""

    uploaded: int = 0
    mounted: int = 0
    present: int = 0  # each layer once a repository


class PushReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole push."""

    results: tuple[PushResult, ...]
    traffic: Traffic = Traffic()
    seconds: float = 0.0
    available: bool = False  # a cell that is not built is no failure
    interrupted: bool = False

    @property
    def exit_code(self) -> ExitCode:
        """An image's own fault outranks the registry's."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        bad = [row for row in self.results if row.result not in GOOD]
        bad = [row for row in bad if not (self.available and row.result is Pushed.NOT_BUILT)]
        if any(not row.environment for row in bad):
            return ExitCode.FAILED
        return ExitCode.ENVIRONMENT if bad else ExitCode.DONE

    def as_data(self) -> dict[str, object]:
        """The stable JSON."""
        return {
            "schema": SCHEMA,
            "images": [row.as_data() for row in self.results],
            "bytes": msgspec.to_builtins(self.traffic),
            "seconds": round(self.seconds, 2),
        }


def digests_json(results: Iterable[PushResult]) -> str:
    """The file of digests: what is in the registry, by name, tags and digest."""
    images = [
        {
            "identifier": row.identifier,
            "image": f"{row.repository}:{row.identifier}",
            "aliases": [*row.aliases],
            "digest": row.digest,
            "reference": row.pinned,
            "tier": row.tier,
        }
        for row in results
        if row.result in GOOD
    ]
    return json.dumps({"schema": SCHEMA, "images": images}, indent=2) + "\n"


def digests_text(results: Iterable[PushResult]) -> str:
    """The same for `cosign sign $(cat digests.txt)`: one `name@sha256:…` a line, each once."""
    return "".join(f"{name}\n" for name in dict.fromkeys(row.pinned for row in results if row.result in GOOD))


def summary(report: PushReport) -> str:
    """What a person reads."""
    rows = [(f"{row.repository}:{row.identifier}", row) for row in report.results]
    width = max((len(name) for name, _ in rows), default=0)
    lines = []
    for name, row in rows:
        end = row.digest or (row.cause or "").partition("\n")[0]
        lines.append(f"{name:{width}}  {row.result.value:9}  {end}".rstrip())
    moved = {row.repository: row for row in report.results if row.aliases}
    for repository in moved:
        tags = [
            f"{alias} = {row.identifier}"
            for row in report.results
            if row.repository == repository
            for alias in row.aliases
        ]
        lines += [f"tags of {repository}: {', '.join(tags)}"]
    told = _causes(report.results)
    lines += ["", *told] if told else []
    traffic = report.traffic
    lines += [
        "",
        f"{_counts(report.results)}; layers: {_mb(traffic.uploaded)} uploaded,"
        f" {_mb(traffic.mounted)} mounted, {_mb(traffic.present)} there already; {report.seconds:.1f} s",
    ]
    return "\n".join(lines) + "\n"


def _causes(results: Sequence[PushResult]) -> list[str]:
    """Causes of more than one line, and each only once."""
    causes: dict[str, list[str]] = {}
    for row in results:
        if row.result not in GOOD and row.cause:
            causes.setdefault(f"{row.result.value}: {row.cause}", []).append(row.identifier)
    return [f"{cause}\n  ({', '.join(dict.fromkeys(names))})" for cause, names in causes.items()]


def _counts(results: Sequence[PushResult]) -> str:
    counts: Mapping[Pushed, int] = {kind: sum(row.result is kind for row in results) for kind in Pushed}
    return ", ".join(f"{count} {kind.value}" for kind, count in counts.items() if count) or "nothing to push"


def _mb(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
