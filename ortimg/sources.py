"""Reads what rendering needs from the disk: templates, and the files of the build context."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from ortimg.core.render import Sources
from ortimg.errors import ConfigError
from ortimg.reading import read_text
from ortimg.verify.sources import verifier_sources

# What the compiler reads, and the licence of what is not ours; the model is in it as text.
_SOURCES = (".c", ".h", ".inc", ".LICENSE")


def read_sources(overrides: Path | None = None) -> Sources:
    """The built-in templates and context; a template in the folder `overrides` replaces its namesake."""
    templates = dict(_tree(builtin_templates(), ".j2"))
    if overrides is not None and (own := own_templates(overrides)):
        unknown = sorted(own.keys() - templates.keys() - _included(own))
        if unknown:
            raise ConfigError(
                *(f"{overrides.name}/{name}: replaces no template of ortimg" for name in unknown),
                hint=f"the names are: {', '.join(sorted(templates))}",
            )
        templates |= own
    context = _tree(_package_folder() / "context") | {
        path: text.decode() for path, text in verifier_sources().items() if path.endswith(_SOURCES)
    }
    return Sources(templates=templates, context=context)


def own_templates(folder: Path) -> dict[str, str]:
    """A user's templates, name → text; none where there is no such folder."""
    return _tree(folder, ".j2") if folder.is_dir() else {}


@cache
def builtin_templates() -> Path:
    """Beside the package in the repository, inside the package in a wheel."""
    inside = _package_folder() / "templates"
    return inside if inside.is_dir() else _package_folder().parent / "templates"


def _package_folder() -> Path:
    return Path(str(files("ortimg")))


def _included(templates: dict[str, str]) -> set[str]:
    """New partials are fine where one of the user's own templates names them."""
    return {name for name in templates if any(f'"{name}"' in text for text in templates.values())}


def _tree(folder: Path, suffix: str = "") -> dict[str, str]:
    return {
        str(path.relative_to(folder)): read_text(path, f"{folder.name}/{path.relative_to(folder)}")
        for path in sorted(folder.rglob(f"*{suffix}"))
        # a folder or a broken link with a template's name is told, not passed over
        if (suffix or path.is_file()) and "__pycache__" not in path.parts
    }
