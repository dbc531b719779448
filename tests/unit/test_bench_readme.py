"""The READMEs tell the newest run of `make bench`."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.publish import newest
from bench.readme import END, READMES, START, block


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.name)
def test_a_readme_tells_the_newest_run(readme: Path) -> None:
    result, path = newest()
    _, _, rest = readme.read_text("utf-8").partition(START)
    assert rest.partition(END)[0].strip() == block(result, path.stem).strip()
