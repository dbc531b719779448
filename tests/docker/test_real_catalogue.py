"""The catalogue against the real files: what is in the cache, and one that is fetched where it is not.

Everything here is read from the ELF headers and the GPU code of the libraries themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ortimg.core.model import Catalogue, CudaSet, Origin, OrtRelease
from ortimg.data import read_catalogue
from ortimg.inputs.cache import Cache
from ortimg.inputs.fetch import Fetcher
from ortimg.inputs.lockfile import read_lock
from ortimg.inputs.probe import Upstream
from ortimg.inputs.result import Fetched
from ortimg.measure.ort import differences, measure

pytestmark = pytest.mark.inputs

ROOT = Path(__file__).parents[2]
DOWN = Upstream(releases="asked not to", hub="asked not to")
CATALOGUE: Catalogue = read_catalogue()
CACHE = Cache.default()
ALWAYS = "1.16.2-cuda11"  # read in any case: other tests need it too


@pytest.fixture(scope="module")
def fetcher() -> Iterator[Fetcher]:
    with Fetcher(CACHE, lock=read_lock(ROOT), upstream=DOWN) as running:
        yield running


def _cached(row: OrtRelease) -> bool:
    return any(CACHE.peek(f"ort/{row.key}/{origin}") for origin in ("upstream", "maven", "wheel"))


@pytest.mark.parametrize(
    "row", [row for row in CATALOGUE.releases if row.key == ALWAYS or _cached(row)], ids=lambda row: row.key
)
def test_a_row_says_what_the_files_say(fetcher: Fetcher, row: OrtRelease) -> None:
    result = fetcher.ort(row).result()
    assert isinstance(result, Fetched), str(result)
    with CACHE.workdir() as work:
        found = measure(result.files[0].path, work)
    told = differences(row, found)
    if result.origin is Origin.WHEEL:  # a build of its own, with its own GPU code
        assert row.wheel is not None
        told = tuple(text for text in told if not text.startswith("gpu."))
        if row.wheel.gpu is not None:
            assert (found.gpu.sass, found.gpu.ptx) == (row.wheel.gpu.sass, row.wheel.gpu.ptx)
    assert told == ()
    layout = next(one for one in CATALOGUE.layouts if one.name == row.layout)
    assert found.links == tuple(sorted(link.format(version=row.version) for link in layout.links))
    assert found.defines == (f"VERS_{row.version}",)
    # what it opens by name and does not link to must be told, if the set is to hold it
    stems = {name.partition(".so")[0] for name in (*row.needed, *row.dlopened)}
    assert {name.partition(".so")[0] for name in found.opened} <= stems


def _sets_here() -> list[CudaSet]:
    return [
        row
        for row in CATALOGUE.cuda_sets
        if all(CACHE.peek(f"wheels/{wheel.filename}") for wheel in row.wheels)
    ]


@pytest.mark.parametrize("row", _sets_here()[:1], ids=lambda row: row.key)
def test_the_gpu_code_of_a_set_is_as_measured(fetcher: Fetcher, row: CudaSet) -> None:
    """One set, and of it the smaller half: `scripts/measure_cuda_set.py` reads all of them."""
    import shutil
    import zipfile

    from ortimg.measure.fatbin import read_gpu_code

    result = fetcher.cuda(row).result()
    assert isinstance(result, Fetched), str(result)
    told = {code.library: code for code in row.gpu}
    seen = 0
    for file, wheel in zip(result.files, row.wheels, strict=True):
        if wheel.size > 200_000_000:
            continue
        with zipfile.ZipFile(file.path) as package, CACHE.workdir() as work:
            for name in package.namelist():
                library = name.rpartition("/")[2]
                if library not in told:
                    continue
                path = work / library
                with package.open(name) as reader, path.open("wb") as writer:
                    shutil.copyfileobj(reader, writer, 1 << 20)
                found = read_gpu_code(path)
                assert (found.sass, found.ptx, found.ptx_isa) == (
                    told[library].sass,
                    told[library].ptx,
                    told[library].ptx_isa,
                )
                seen += 1
    assert seen, "no library of the set was read"
