"""What the tests on a real engine share. No engine, or a bad one, is an error here: nothing is skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from real import MARK, VERIFY, RealCell, make_real_cell

from ortimg.engine.cache import CacheRecord, cache_records, prune_cache
from ortimg.engine.check import check_engine
from ortimg.engine.client import Engine
from ortimg.verify.binary import Verifier, get_verifier


@pytest.fixture(scope="session")
def engine() -> Engine:
    """A good engine; the error that a user would read, otherwise."""
    check_engine()
    return Engine()


@pytest.fixture(scope="session")
def verifier(request: pytest.FixtureRequest) -> Verifier:
    """`ort-verify`, compiled once and kept between runs."""
    return get_verifier(request.config.cache.mkdir("ortimg"))


@pytest.fixture(scope="session")
def real_cell(tidy_engine: Engine) -> RealCell:
    """1.16.2 for CUDA 11.8 on Debian 12, from real inputs, built once."""
    return make_real_cell(tidy_engine)


@pytest.fixture(scope="session")
def tidy_engine(engine: Engine) -> Iterator[Engine]:
    """The engine; what its builder kept of builds with one change in them is given back at the end."""
    before = {record.id for record in cache_records(engine)}

    def ours(record: CacheRecord) -> bool:
        if any(word in record.description for word in (MARK, "--from=cell ")):
            return True
        # What stands on a changed step has the usual text; the engine calls it shared, which it is not.
        return record.id not in before and any(word in record.description for word in (VERIFY, "ldconfig"))

    yield engine
    prune_cache(engine, ours)
