"""Content hashes: what must change them, and what must not."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rendered import SOURCES, all_cells, dockerfiles, one, with_template
from wishes import cell as wish
from wishes import images, planned

from ortimg.core import content
from ortimg.core.content import Unit, digest
from ortimg.core.model import Origin
from ortimg.core.render import Pins, Sources
from ortimg.core.stages import split_stages
from ortimg.factory.images import CellImage, Identities, cell_image

CELL = planned(images(include=[wish("1.16.2", "11.8")])).cells[0]
INPUTS = Identities(
    ort="a" * 64,
    cuda="b" * 64,
    base="debian:12-slim",
    ort_origin=Origin.UPSTREAM,
    cuda_origin=Origin.WHEEL,
    base_origin=Origin.UPSTREAM,
)
TEXT = one(CELL)
BELOW: dict[Unit, Unit] = getattr(content, "BELOW", {})  # unit → the one that it stands on


def image(
    text: str | None = None, context: dict[str, str] | None = None, inputs: Identities = INPUTS
) -> CellImage:
    return cell_image(
        CELL, inputs, TEXT if text is None else text, SOURCES.context if context is None else context
    )


@cache
def original() -> CellImage:
    return image()


def changed(now: CellImage) -> tuple[set[Unit], bool]:
    """Which units differ from the original, and whether the cell does."""
    before = original()
    units = {unit for unit in before.units if now.units[unit].content != before.units[unit].content}
    return units, now.content != before.content


def and_above(*units: Unit) -> set[Unit]:
    """These units and those that stand on them."""
    found = {*units}
    while more := {unit for unit, below in BELOW.items() if below in found} - found:
        found |= more
    return found & original().units.keys()


def test_the_same_gives_the_same() -> None:
    assert changed(image()) == (set(), False)


def test_a_comment_changes_nothing() -> None:
    commented = 0
    for name, template in SOURCES.templates.items():
        text = one(CELL, with_template(name, "# why\n\n" + template))
        commented += text != TEXT  # the others are of other flavours
        assert changed(image(text)) == (set(), False), name
    assert commented >= 9


def edited(name: str, old: str, new: str) -> Sources:
    assert old in SOURCES.templates[name]
    return with_template(name, SOURCES.templates[name].replace(old, new, 1))


@pytest.mark.parametrize(
    ("name", "old", "new", "units"),
    [
        # a label, a variable, the way the loader's cache is made: glue
        ("stages/image.j2", "LABEL ", 'LABEL a="b" ', set()),
        ("stages/image.j2", "CUDA_MODULE_LOADING=LAZY", "CUDA_MODULE_LOADING=EAGER", set()),
        ("stages/image.j2", "ldconfig &&", "ldconfig -v &&", set()),
        ("stages/ort.j2", "set -eux\n", "set -eux\ntrue\n", and_above(Unit.ORT)),
        ("stages/cuda.j2", "umask 022", "umask 0022", and_above(Unit.CUDA)),
        ("stages/ort-verify.j2", "set -eux", "set -ux", {Unit.VERIFIER, Unit.STUB}),
        ("stages/ort-verify.j2", "/stub/ /\n", "/stub /\n", {Unit.STUB}),
        ("stages/tools.j2", "--only-binary=:all:", "--only-binary :all:", {Unit.VERIFIER, Unit.STUB}),
    ],
)
def test_a_change_of_text_changes_what_it_makes(name: str, old: str, new: str, units: set[Unit]) -> None:
    assert changed(image(one(CELL, edited(name, old, new)))) == (units, True)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("stages/ort-archive.j2", "ADD --checksum", "ADD --link --checksum"),
        ("stages/cuda-archive.j2", "--no-deps", "--no-deps -v"),
    ],
)
def test_how_an_archive_is_fetched_does_not_count(name: str, old: str, new: str) -> None:
    """What it is counts: its identity is among the inputs."""
    assert changed(image(one(CELL, edited(name, old, new)))) == (set(), False)


@pytest.mark.parametrize(
    ("replace", "units"),
    [
        ({"ort": "c" * 64}, and_above(Unit.ORT)),
        ({"cuda": "c" * 64}, and_above(Unit.CUDA)),
        ({"base": "c" * 64}, set()),
    ],
)
def test_another_input_changes_what_is_made_of_it(replace: dict[str, str], units: set[Unit]) -> None:
    assert changed(image(inputs=msgspec.structs.replace(INPUTS, **replace))) == (units, True)


@pytest.mark.parametrize(
    ("path", "units"),
    [
        ("tools/requirements.txt", {Unit.VERIFIER, Unit.STUB}),
        ("tools/cut_runpath.py", and_above(Unit.ORT)),
        ("tools/pick_libraries.py", and_above(Unit.CUDA)),
        ("verify/src/main.c", {Unit.VERIFIER, Unit.STUB}),
        ("verify/stub/libcuda.c", {Unit.VERIFIER, Unit.STUB}),
    ],
)
def test_a_file_of_the_context_changes_what_is_made_with_it(path: str, units: set[Unit]) -> None:
    context = {**SOURCES.context}
    context[path] += "\n"
    assert changed(image(context=context)) == (units, True)
    del context[path]
    assert changed(image(context=context)) == (units, True), "one that is gone counts as well"


def test_every_file_that_a_stage_mounts_counts_and_no_other() -> None:
    mounted = {source for stage in split_stages(TEXT).values() for source in stage.context}
    counted = 0
    for path in SOURCES.context:
        is_mounted = any(path == source or path.startswith(f"{source}/") for source in mounted)
        assert changed(image(context={**SOURCES.context, path: ""}))[1] == is_mounted, path
        counted += is_mounted
    assert counted > 20


def test_a_folder_whose_name_only_begins_alike_does_not_count() -> None:
    assert changed(image(context={**SOURCES.context, "verify2/x.c": "x", "toolbox": "x"})) == (set(), False)


def test_a_digest_of_the_base_makes_another_cell_of_the_same_units() -> None:
    pinned = one(CELL, pins=Pins(base_digest={"debian12": f"sha256:{'d' * 64}"}))
    assert changed(image(pinned)) == (set(), True)


def test_cells_that_share_a_unit_agree_on_its_name() -> None:
    names: dict[tuple[str, Unit], set[str]] = {}
    for cell in all_cells():
        found = cell_image(cell, INPUTS, dockerfiles()[cell.identifier], SOURCES.context)
        for unit, made in found.units.items():
            names.setdefault((made.key, unit), set()).add(made.reference)
    assert {len(references) for references in names.values()} == {1}
    assert len({reference for references in names.values() for reference in references}) == len(names)


# few characters, digits and line ends among them: those that an encoding of lists could mix up
_PARTS = st.lists(st.text("a1\n", max_size=3), max_size=4)


@given(_PARTS, _PARTS)
def test_a_digest_tells_lists_apart(some: list[str], other: list[str]) -> None:
    assert (digest(*some) == digest(*other)) == (some == other)


def test_a_digest_stays_the_same_in_the_next_version_of_ortimg() -> None:
    """Or every unit on every machine would be built again: `printf '1\\na2\\nbc' | sha256sum`."""
    assert digest("a", "bc") == "018e0d1d09e2147ccf5a30b398ed427e085e55f114b798afdcc3a859cb4beb87"
