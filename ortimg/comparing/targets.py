"""What OLD and NEW mean: a version, a cell, a folder, or an image."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ortimg.comparing.catalogue import VERSION, find_release, side_of_cell, side_of_release
from ortimg.comparing.folder import read_folder
from ortimg.comparing.side import side_of
from ortimg.core.catalogue import Index
from ortimg.core.compare_model import Side, Source
from ortimg.core.model import Catalogue, Cell
from ortimg.core.rules import Refusal, Rules
from ortimg.data import read_catalogue
from ortimg.errors import ConfigError
from ortimg.inputs.cache import Cache, Say
from ortimg.project import CONFIG_NAME, Project, load_project


@dataclass(frozen=True)
class Gathered:
    """One side, and what may be done with it beyond comparing facts."""

    side: Side
    headers: dict[str, bytes] = field(default_factory=dict)
    header_folder: str | None = None
    runs_at: Path | str | None = None  # folder or image in which a model can run


class Targets:
    """Reads the two words of the command line. `project`: a folder that may hold an images.yaml.

    `say` gets a line before what takes long.
    """

    def __init__(self, project: Path, cache: Cache, say: Say) -> None:
        self._folder, self._cache, self._say = project, cache, say

    def both(self, old: str, new: str) -> tuple[Gathered, Gathered]:
        """Raises ConfigError for what cannot be meant, EnvironmentFault where an image is absent."""
        words = [self._read(old, "OLD"), self._read(new, "NEW")]
        like = next((_cuda(word.side) for word in words if not isinstance(word, str)), None)
        for number, word in enumerate(words):
            if isinstance(word, str):
                # A version may have several archives: the one for the CUDA of the other side is meant.
                row, note = find_release(word, self._index, like)
                like = row.cuda_major
                words[number] = Gathered(side_of_release(word, row, [note] if note else []))
        first, second = words
        assert isinstance(first, Gathered)
        assert isinstance(second, Gathered)
        return first, second

    def _read(self, word: str, which: str) -> Gathered | str:
        """A side; a version stays a word until the other side is known."""
        hint = "Name a version such as 1.18.1, a cell, a folder or an image."
        if not word:  # such as of a variable that is not set: it would mean this folder
            raise ConfigError(f"{which} is empty", hint=hint)
        if Path(word).is_dir():
            return self._in_folder(word)
        if word.startswith(("/", "./", "../")):
            raise ConfigError(f"there is no folder {word}", hint=hint)
        # A version means the release, also where a tag of images.yaml has the same name.
        if (version := VERSION.fullmatch(word)) and version["version"] in self._index.releases:
            return word
        if cell := self._cell(word):
            return Gathered(side_of_cell(word, cell))
        if version:  # says what is wrong with it
            return word
        return self._in_image(word)

    def _in_folder(self, word: str) -> Gathered:
        found = read_folder(Path(word))
        side = side_of(found, word, Source.ROOT, self._catalogue.cuda_sets)
        whole = (Path(word) / "usr").is_dir()  # not an unpacked archive, which brings no C library
        return Gathered(side, found.headers, found.header_folder(), Path(word) if whole else None)

    def _in_image(self, word: str) -> Gathered:
        from ortimg.comparing.kept import read_image  # docker's SDK
        from ortimg.engine.client import Engine

        found = read_image(Engine(), word, self._cache, self._say)
        side = side_of(found, word, Source.IMAGE, self._catalogue.cuda_sets)
        return Gathered(side, found.headers, found.header_folder(), word)

    def _cell(self, word: str) -> Cell | None:
        """The cell of this identifier or tag: of images.yaml, else any that the catalogue can make."""
        if self._project is not None:
            for cell in self._project.plan.cells:
                if word in (cell.identifier, *cell.tags):
                    return cell
        parts = word.split("-")
        if len(parts) != 4 or not parts[1].startswith("cuda") or not parts[2].startswith("cudnn"):
            return None
        ort, cuda, cudnn, base = parts[0], parts[1][len("cuda") :], parts[2][len("cudnn") :], parts[3]
        rules = Rules(self._index)
        found = rules.resolve(ort, cuda, cudnn, base)
        if isinstance(found, Refusal):
            near = rules.nearest(ort, cuda, cudnn, base)
            raise ConfigError(f"{word}: {found.reason}", hint=f"Nearest: {near}." if near else None)
        release, cuda_set, row = found
        return Cell(release=release, cuda_set=cuda_set, base=row)

    @cached_property
    def _project(self) -> Project | None:
        return load_project(self._folder) if (self._folder / CONFIG_NAME).is_file() else None

    @cached_property
    def _catalogue(self) -> Catalogue:
        return self._project.catalogue if self._project else read_catalogue()

    @cached_property
    def _index(self) -> Index:
        return Index(self._catalogue)


def _cuda(side: Side) -> int | None:
    return int(side.cuda_major) if side.cuda_major and side.cuda_major.isdecimal() else None
