"""Cells → the text of every generated file. Pure: the same input gives the same bytes, on any day."""

from __future__ import annotations

import itertools
import json
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import jinja2
import msgspec

from ortimg.core.bake import bake_file
from ortimg.core.content import stage_fault
from ortimg.core.cudnn import without_cudnn
from ortimg.core.mirrors import TOOLS_IMAGE
from ortimg.core.model import Cell, Flavour, OrtRelease, dlopened
from ortimg.errors import ConfigError

DOCKERFILES = "dockerfiles"
BAKE_FILE = "docker-bake.json"
PYTHON = "/usr/bin/python3"  # the distribution's own


class Pins(msgspec.Struct, frozen=True, kw_only=True):
    """What the lock adds to the catalogue: hashes and digests that were resolved."""

    ort_sha256: Mapping[str, str] = {}  # release key → sha256 of the upstream archive
    base_digest: Mapping[str, str] = {}  # base name → "sha256:…"


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """What rendering reads, already in memory."""

    templates: Mapping[str, str]  # name → text, "Dockerfile.j2"
    context: Mapping[str, str]  # path in the build context → text, "tools/cut_runpath.py"


def render(
    repository: str,
    cells: Sequence[Cell],
    sources: Sources,
    pins: Pins | None = None,
    tools_image: str = TOOLS_IMAGE,
) -> dict[str, str]:
    """Return path → text of all generated files: Dockerfiles, their build context, the bake file.

    Raises ConfigError where a template uses a name that does not exist, or gives text that is no Dockerfile.
    """
    template = _template(tuple(sorted(sources.templates.items())))
    pins = pins or Pins()
    files = {f"{DOCKERFILES}/{path}": text for path, text in sources.context.items()}
    for cell in cells:
        text = _normal(_render_cell(template, repository, cell, pins, tools_image))
        _check_continuations(text, cell.identifier)
        if fault := stage_fault(text, cell.flavour is Flavour.DEVEL):
            raise ConfigError(f"{dockerfile_path(cell)}: {fault}", hint="See the folder templates/.")
        files[dockerfile_path(cell)] = text
    files[BAKE_FILE] = json.dumps(bake_file(repository, cells), indent=2) + "\n"
    return dict(sorted(files.items()))


def dockerfile_path(cell: Cell) -> str:
    """`dockerfiles/<identifier>/Dockerfile`."""
    return f"{DOCKERFILES}/{cell.identifier}/Dockerfile"


def manifest(cell: Cell) -> dict[str, object]:
    """What the image promises; `ort-verify` holds it against what is there."""
    release, cuda, base = cell.release, cell.cuda_set, cell.base
    return {
        "schema": 1,
        "identifier": cell.identifier,
        "ort": {
            "version": release.version,
            "prefix": ort_prefix(release),
            "soname": release.soname,
            "needed": release.needed,
            "dlopened": dlopened(release, cuda),
        }
        | ({"python": {"interpreter": PYTHON, "site": python_site(cell)}} if cell.flavour.python else {}),
        "cuda": {
            "version": cuda.cuda,
            "major": cuda.major,
            "folder": cuda.folder,
            "libraries": cuda.libraries,
        },
        # null: left out on purpose, so that ort-verify misses none
        "cudnn": {"version": cuda.cudnn_version, "major": cuda.cudnn_major} if cuda.cudnn_major else None,
        "base": {"name": base.name, "glibc": base.glibc},
        "flavour": cell.flavour.value,
    }


def python_site(cell: Cell) -> str:
    """Where the packages of a Python flavour lie, the same in every distribution."""
    return f"{ort_prefix(cell.release)}/{cell.flavour.value}"


def ort_prefix(release: OrtRelease) -> str:
    """The folder of one ONNX Runtime version inside an image."""
    return f"/opt/onnxruntime/{release.version}"


def _render_cell(template: jinja2.Template, repository: str, cell: Cell, pins: Pins, tools_image: str) -> str:
    release, cuda, base = cell.release, cell.cuda_set, cell.base
    digest = pins.base_digest.get(base.name)
    labels = {
        "ortimg.identifier": cell.identifier,
        "ortimg.ort": release.version,
        "ortimg.cuda": cuda.cuda,
        "ortimg.cudnn": cuda.cudnn_version,
        "ortimg.base": base.name,
        "ortimg.flavour": cell.flavour.value,
        "ortimg.tier": "load",
        # A Python flavour has one origin, the wheel; `ortimg build` says where the rest came from.
        "ortimg.origin": f"ort={'wheel' if cell.wheels else 'upstream'},cuda=wheel,base=upstream"
        + (",headers=upstream" if cell.flavour is Flavour.DEVEL else ""),
    }
    try:
        return template.render(
            identifier=cell.identifier,
            repository=repository,
            tools={"image": tools_image},
            ort={
                "version": release.version,
                "url": release.url,
                "sha256": release.sha256 or pins.ort_sha256.get(release.key),
                "prefix": ort_prefix(release),
                "soname": release.soname,
                "api": release.version.split(".")[1],  # ORT_API_VERSION is the minor version
            },
            flavour=cell.flavour.value,
            devel=cell.flavour is Flavour.DEVEL,
            python=_python(cell),
            cuda={
                "version": cuda.cuda,
                "cudnn_version": cuda.cudnn_version,
                "without_cudnn": without_cudnn(cuda),
                "root": cuda.folder.removesuffix("/lib64"),
                "folder": cuda.folder,
                "libraries": cuda.libraries,
                "wheels": [{"requirement": w.requirement, "sha256": w.sha256} for w in cuda.wheels],
            },
            base={
                "name": base.name,
                "title": base.title,
                "reference": f"{base.image}@{digest}" if digest else base.image,
                "packages": base.packages_for(cell.flavour),
                "installer": base.packages.installer if base.packages else None,
                "user": base.user,
            },
            manifest=msgspec.json.format(msgspec.json.encode(manifest(cell)), indent=2).decode(),
            labels=labels,
        )
    except Exception as error:  # whatever a template's own expression raises: the template is at fault
        raise _template_fault(error, cell.identifier) from error


def _python(cell: Cell) -> dict[str, object] | None:
    if cell.base.python is None or cell.flavour.python is None:
        return None
    return {
        "version": cell.flavour.python,
        "site": python_site(cell),
        "path_file": f"{cell.base.python.site}/onnxruntime.pth",
        "wheels": [{"requirement": w.requirement, "sha256": w.sha256} for w in cell.wheels],
    }


@lru_cache(maxsize=4)
def _template(named: tuple[tuple[str, str], ...]) -> jinja2.Template:
    templates = dict(named)
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_loader(templates)),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Dockerfiles, not HTML
    )
    try:
        return environment.get_template("Dockerfile.j2")
    except jinja2.TemplateError as error:
        raise _template_fault(error, None) from error


def _loader(templates: Mapping[str, str]) -> Callable[[str], tuple[str, str, Callable[[], bool]] | None]:
    """Templates with Unix line ends and a last newline, whatever editor wrote them.

    A partial without its last newline would join the next one's first line. The name is given as file name
    too, so that a traceback tells in which template it happened.
    """

    def load(name: str) -> tuple[str, str, Callable[[], bool]] | None:
        if name not in templates:
            return None
        return templates[name].replace("\r\n", "\n").rstrip("\n") + "\n", name, lambda: True

    return load


def _template_fault(error: Exception, identifier: str | None) -> ConfigError:
    """One line that names the template and the line in it."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        where = f"templates/{error.name or 'Dockerfile.j2'}:{error.lineno}"
    elif isinstance(error, jinja2.TemplateNotFound):
        return ConfigError(f"templates/{error.name}: no such template")
    else:
        where = _raising_line(error)
    cell = f" (cell {identifier})" if identifier else ""
    return ConfigError(f"{where}: {getattr(error, 'message', error)}{cell}")


def _raising_line(error: BaseException) -> str:
    """Jinja puts the template's own name and line into the traceback of a run-time error."""
    where = "templates"
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.endswith(".j2"):
            where = f"templates/{frame.filename}:{frame.lineno}"
    return where


# Each begins with a plain character: other patterns would be tried at every place of every file.
_BROKEN_CONTINUATION = re.compile(r"\\\n[ \t]*(?:\n|\Z)")
_LONE_BACKSLASH = re.compile(r"\n[ \t]*\\(?:\n|\Z)")


def _normal(text: str) -> str:
    """Unix line ends, no blanks at line ends, exactly one newline at the end of the file."""
    return "\n".join([line.rstrip(" \t\r") for line in text.split("\n")]).rstrip("\n") + "\n"


def _check_continuations(text: str, identifier: str) -> None:
    """A `\\` that continues into nothing swallows the next instruction: refuse it."""
    if not _BROKEN_CONTINUATION.search(text) and not _LONE_BACKSLASH.search(f"\n{text}"):
        return
    lines = text.split("\n")
    for number, (line, following) in enumerate(itertools.pairwise(lines), start=1):
        if line.strip() == "\\":
            raise ConfigError(
                f"{DOCKERFILES}/{identifier}/Dockerfile:{number}: a backslash alone on its line",
                hint="an {% if %} in a template left it behind: put the backslash inside the condition.",
            )
        if line.endswith("\\") and not following.strip():
            raise ConfigError(
                f"{DOCKERFILES}/{identifier}/Dockerfile:{number}: continued, but the next line is empty",
                hint="drop the backslash, or the empty line, in the template.",
            )
