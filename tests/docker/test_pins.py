"""The updaters of the catalogue, on real wheels: they say what the catalogue says."""

from __future__ import annotations

from pathlib import Path

import pin_cuda_set
import pytest
from installed import ROOT

from ortimg.core.versions import number
from ortimg.data import read_catalogue
from ortimg.inputs.cache import Cache
from ortimg.inputs.fetch import Fetcher
from ortimg.inputs.lockfile import read_lock
from ortimg.inputs.result import Fetched

pytestmark = pytest.mark.inputs


def test_wheels_that_are_there_would_be_pinned_the_same(tmp_path: Path) -> None:
    """Those below 200 MB: the others differ in nothing but the time it takes."""
    sets = read_catalogue().cuda_sets
    row = next(row for row in sets if row.key == "11.8-cudnn8")
    small = [wheel for wheel in row.wheels if wheel.size < 200_000_000]
    cache = Cache.default()
    with Fetcher(cache, lock=read_lock(ROOT)) as fetcher:
        fetched = fetcher.cuda(row).result()
    assert isinstance(fetched, Fetched), str(fetched)
    paths = {file.name: file.path for file in fetched.files}
    for wheel in small:
        (tmp_path / wheel.filename).symlink_to(paths[wheel.filename])
    wheels = pin_cuda_set.in_order(tmp_path.glob("*.whl"))
    found = pin_cuda_set.make_row("11.8.0", row.cudnn_version, wheels, sets, tmp_path)
    assert found.key == row.key
    assert found.wheels == tuple(small)
    assert found.glibc is not None
    assert row.glibc is not None
    assert number(found.glibc) <= number(row.glibc)
