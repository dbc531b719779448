"""The pages of docs/guide and their kin: what the comment above a block promises, and where a page breaks it.

A block of shell, C++, CMake or Python has one of these comments on the line above it:

    run: host                    bash, where the engine is, in the page's folder; ortimg is on PATH
    run: image=REFERENCE         bash or Python in a container of that image, without network; the page's
                                 folder is /guide there, and the working directory
        user=N:N  root=ro        as that user; with a root file system that cannot be written
        keep                     in one container that is kept for the page's blocks with `keep` of that image
        exit=N                   of any block that is run: it is meant to end with N
        always                   of a host block: also after a failed one, to take away what the page started
    file: NAME                   the text of that file in the page's folder; a later block uses it
    output                       a text block: all that the block above prints; a line "…" stands for any
                                 lines, "…" within a line for any text
    gpu: docs/gpu-runs/…         was run on a GPU machine; that record holds the command
    gpu: not yet run             and the page says so in words
    not run: REASON              in plain words

A page's folder begins as a clone does for a reader: images.yaml and images.lock are there, and examples/.
So are the release archives of ONNX Runtime that its blocks name, as `ortimg fetch` brought them: the block
that downloads them is "not run". "debian:12" is that image, or the same Debian that ortimg bootstrapped where
Docker Hub is away. Files carry from block to block, variables do not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from readme import ROOT, Block, blocks

GUIDE = ROOT / "docs" / "guide"
TWIN = ".zh.md"

SHELL = frozenset({"sh", "bash"})
PYTHON = frozenset({"python", "py"})
WITH_MARKER = SHELL | PYTHON | {"console", "c", "c++", "cpp", "cmake", "dockerfile"}
WITHOUT = frozenset({"text", "yaml", "json", "toml", "ini"})  # may be written to a file, need not

# What uses a file whose name it does not say.
_BY_RULE = {
    "CMakeLists.txt": "cmake ",
    "Dockerfile": "docker build",
    "compose.yaml": "docker compose",
    "images.yaml": "ortimg ",
}


class Kind(Enum):
    HOST = "run: host"
    IMAGE = "run: image="
    FILE = "file: "
    OUTPUT = "output"
    GPU = "gpu: docs/gpu-runs/"
    GPU_NOT_YET = "gpu: not yet run"
    NOT_RUN = "not run: "


RUN = (Kind.HOST, Kind.IMAGE)
NO_RUN = (Kind.GPU, Kind.GPU_NOT_YET, Kind.NOT_RUN)


@dataclass(frozen=True)
class Marker:
    """What a comment promises of the block below it."""

    kind: Kind
    value: str = ""  # the image, the file's name, the record, the reason
    user: str | None = None
    read_only: bool = False
    keep: bool = False
    always: bool = False
    exit: int = 0


@dataclass(frozen=True)
class Step:
    """A block with its promise, and what it must print if the page shows that."""

    block: Block
    marker: Marker
    output: Block | None = None


@dataclass(frozen=True)
class Page:
    """A page that was read: `faults` are "LINE: what"."""

    path: Path
    text: str
    steps: tuple[Step, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As pytest -k takes it: the page's name, the example's folder."""
        return self.path.parent.name if self.path.name.startswith("README") else self.path.name.split(".")[0]

    @property
    def twin(self) -> Path:
        """The Chinese page."""
        return self.path.with_name(self.path.stem + TWIN)


def read_marker(comment: str) -> Marker:
    """The comment's meaning. Raises ValueError with what is wrong."""
    comment = comment.strip()
    if comment == "output":
        return Marker(Kind.OUTPUT)
    word, colon, rest = comment.partition(":")
    value = rest.strip()
    if colon and value:
        if word == "run":
            return _read_run(value)
        if word == "file":
            if value.startswith("/") or ".." in value.split("/") or re.search(r"\s", value):
                raise ValueError(f'"{value}" is no name of a file in the page\'s folder')
            return Marker(Kind.FILE, value)
        if word == "gpu" and value == "not yet run":
            return Marker(Kind.GPU_NOT_YET)
        if word == "gpu" and value.startswith("docs/gpu-runs/") and ".." not in value:
            return Marker(Kind.GPU, value)
        if word == "not run":
            return Marker(Kind.NOT_RUN, value)
    raise ValueError(f'"{comment}" is no marker; tests/guide.py lists them')


def _read_run(value: str) -> Marker:
    place, *rest = value.split()
    kind, _, image = place.partition("=")
    options: dict[str, str] = {}
    for word in rest:
        key, equals, said = word.partition("=")
        if key in options:
            raise ValueError(f'"{key}" is said twice')
        options[key] = said if equals else "yes"
    code = options.pop("exit", "0")
    if not code.isdigit():
        raise ValueError(f'"exit={code}" is no exit code')
    if place == "host":
        always = options.pop("always", None)
        if options or always not in (None, "yes"):
            raise ValueError(f'"{" ".join(rest)}" is not for the host')
        return Marker(Kind.HOST, always=always == "yes", exit=int(code))
    if kind != "image" or not image:
        raise ValueError(f'"{place}" is neither "host" nor "image=…"')
    user, root, keep = options.pop("user", None), options.pop("root", None), options.pop("keep", None)
    if options:
        raise ValueError(f'"{" ".join(options)}" is not known')
    if user is not None and not re.fullmatch(r"\d+:\d+", user):
        raise ValueError(f'"user={user}" is not two numbers')
    if root not in (None, "ro") or keep not in (None, "yes"):
        raise ValueError('only "root=ro" and "keep" are known')
    return Marker(Kind.IMAGE, image, user, root == "ro", keep == "yes", exit=int(code))


def read_page(path: Path, text: str | None = None) -> Page:
    """Read a page; what is wrong with its blocks is kept, not raised."""
    text = path.read_text("utf-8") if text is None else text
    lines = text.splitlines()
    steps: list[Step] = []
    faults = [*_odd_fences(text)]
    end = 0  # line that the block above ends on
    for block in blocks(text):
        alone = any(lines[end : block.line - 3])  # words stand between it and the block above
        end = lines_of(block)[-1]
        try:
            step = _step(block)
        except ValueError as error:
            faults.append(f"{block.line}: {error}")
            continue
        if step is None:
            continue
        if step.marker.kind is not Kind.OUTPUT:
            steps.append(step)
        elif alone or not steps or steps[-1].output or steps[-1].marker.kind not in (*RUN, *NO_RUN):
            faults.append(f"{block.line}: an output stands directly below the block that prints it")
        else:
            steps[-1] = replace(steps[-1], output=block)
    faults += _unused(steps)
    faults += _unheld_records(steps)
    return Page(path, text, tuple(steps), tuple(faults))


def _step(block: Block) -> Step | None:
    """The block as a step, None for one that promises nothing. Raises ValueError."""
    if block.marker is None:
        if block.info in WITH_MARKER:
            raise ValueError(f"a block of {block.info} has no marker")
        if block.info not in WITHOUT:
            raise ValueError(f'"{block.info}" is no language of the guide; text will do')
        return None
    if block.info not in WITH_MARKER | WITHOUT:
        raise ValueError(f'"{block.info}" is no language of the guide; text will do')
    marker = read_marker(block.marker)
    runs = {Kind.HOST: SHELL, Kind.IMAGE: SHELL | PYTHON}.get(marker.kind)
    if runs is not None and block.info not in runs:
        raise ValueError(f"a block of {block.info} cannot be run there; write it to a file")
    if marker.kind is Kind.OUTPUT and block.info != "text":
        raise ValueError("an output is a block of text")
    return Step(block, marker)


def _odd_fences(text: str) -> Iterator[str]:
    """Fences that the reader of blocks does not see."""
    seen = {line for block in blocks(text) for line in lines_of(block)}
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*(```|~~~)", line) and number not in seen:
            yield f"{number}: a fence is three backticks at the start of a line, and has its end"
        elif re.match(r"\s*<!-- *(run|file|output|gpu|not run)\b", line) and number + 1 not in seen:
            yield f"{number}: no block stands directly below this marker"


def lines_of(block: Block) -> range:
    return range(block.line - 1, block.line + block.text.count("\n") + 1)


def _unused(steps: Sequence[Step]) -> Iterator[str]:
    for index, step in enumerate(steps):
        if step.marker.kind is Kind.FILE and not _used(step.marker.value, steps[index + 1 :], steps):
            yield f"{step.block.line}: no block below uses {step.marker.value}"


def _used(
    name: str, later: Sequence[Step], steps: Sequence[Step], seen: frozenset[str] = frozenset()
) -> bool:
    """Whether a block below says the name, or a file does that such a block uses."""
    word = re.compile(rf"(?<![\w.-]){re.escape(name.rpartition('/')[2])}(?![\w-])")
    rule = _BY_RULE.get(name.rpartition("/")[2])
    for step in later:
        if step.marker.kind in (*RUN, Kind.GPU) and (
            word.search(step.block.text) or (rule and rule in step.block.text)
        ):
            return True
    for index, step in enumerate(steps):
        other = step.marker.value
        if (
            step.marker.kind is Kind.FILE
            and other != name
            and other not in seen
            and word.search(step.block.text)
        ):
            return _used(other, steps[index + 1 :], steps, seen | {name})
    return False


def _unheld_records(steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        if step.marker.kind is Kind.GPU and (fault := record_fault(step, ROOT)):
            yield f"{step.block.line}: {fault}"


def record_fault(step: Step, root: Path) -> str | None:
    """What keeps a record from being that of the block.

    A record in JSON has the block's text under "command", somewhere, and may have what it printed beside it
    under "output"; any other record holds the text as it stands, and the output too where the page shows it.
    """
    path = root / step.marker.value
    if not path.is_file():
        return f"there is no {step.marker.value}"
    held, command = path.read_text("utf-8"), step.block.text.strip()
    shown = None if step.output is None else step.output.text
    if path.suffix != ".json":
        if command not in held:
            return f"{step.marker.value} does not hold this command"
        said = held[held.index(command) + len(command) :]
    else:
        found = [run for run in _objects(json.loads(held)) if str(run.get("command", "")).strip() == command]
        if not found:
            return f'{step.marker.value} has no "command" that is this one'
        said = str(found[0].get("output", ""))
    if shown is not None and not output_within(shown, said):
        return f"{step.marker.value} does not hold the output that the page shows"
    return None


def _objects(value: object) -> Iterator[dict[str, object]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(inner)


def _pattern(shown: str) -> str:
    lines = [line.rstrip() for line in shown.strip("\n").split("\n")]
    pattern = ""
    for line in lines:
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += "[^\n]*?".join(re.escape(part) for part in line.split("…")) + r"[ \t]*\n"
    return pattern


def output_matches(shown: str, said: str) -> bool:
    """Whether a program said what the page shows, all of it."""
    return re.fullmatch(_pattern(shown), said.strip("\n") + "\n") is not None


def output_within(shown: str, said: str) -> bool:
    """Whether the lines that the page shows stand in a row in a longer text."""
    return re.search("^" + _pattern(shown), said.strip("\n") + "\n", re.MULTILINE) is not None


def english_pages() -> list[Path]:
    """Every page whose blocks are promises: the examples, which take longest, derived images, the guide."""
    found = [
        *sorted(ROOT.glob("examples/*/README.md")),
        ROOT / "docs" / "derived.md",
        *sorted(GUIDE.glob("*.md")),
    ]
    return [path for path in found if path.exists() and not path.name.endswith(TWIN)]
