"""The files that a repository of images starts with, and writing them without harm to what is there."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from ortimg import __version__
from ortimg.errors import ConfigError
from ortimg.rendering import TEMPLATES
from ortimg.sources import builtin_templates

# Stored without its dot: packaging tools would obey it.
_STORED = {
    "images.yaml": "images.yaml",
    "Makefile": "Makefile",
    "README.md": "README.md",
    ".gitignore": "gitignore",
}


def starter_files() -> dict[str, str]:
    """Path → text of a new repository."""
    folder = files("ortimg.data") / "init"
    return {
        path: (folder / stored).read_text("utf-8").replace("@VERSION@", __version__)
        for path, stored in _STORED.items()
    }


def template_files() -> dict[str, str]:
    """Path → text of the built-in templates, where a repository's own ones lie."""
    source = builtin_templates()
    return {
        f"{TEMPLATES}/{path.relative_to(source)}": path.read_text("utf-8")
        for path in sorted(source.rglob("*.j2"))
    }


def add_missing(folder: Path, wanted: Mapping[str, str]) -> set[str]:
    """Write what is not there yet, return which; nothing that exists is changed, broken links included.

    Raises ConfigError where a folder is needed and a file is in its place.
    """
    added = set()
    for path, text in wanted.items():
        target = folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            stream = target.open("x", encoding="utf-8", newline="\n")
        except FileExistsError as error:
            if error.filename == str(target):
                continue
            raise ConfigError(
                f"{error.filename} is a file, not a folder", hint="Name another folder."
            ) from None
        except NotADirectoryError as error:
            raise ConfigError(f"{error.filename}: a file stands where a folder is needed") from None
        try:
            with stream:
                stream.write(text)
        except BaseException:
            target.unlink(missing_ok=True)  # half a file would be left alone the next time
            raise
        added.add(path)
    return added
