"""What tests of every kind share: the option for golden files, and ortimg as a user installs it."""

from __future__ import annotations

import signal
import subprocess
import sys
import sysconfig
import venv

import pytest
from installed import BIN, ROOT, Installed, hatchling

sys.path.insert(0, str(ROOT / "scripts"))  # the updaters of the catalogue are no package

# A CI job in the background ignores SIGINT, and what it starts inherits that: nothing could be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="Write the files in tests/golden/expected anew; look at the difference with git.",
    )


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel of the working tree, in an environment of its own; no network is used.

    hatchling and uv do what `make wheel` and pip do, in a third of the time (tests/docker has the real two).
    What ortimg requires comes from the environment of the tests, by a path file: folders that such a file
    names have no path files of their own, so this repository's link to its sources does not get in.
    """
    folder = tmp_path_factory.mktemp("installed")
    wheel = hatchling("wheel", ROOT, folder)
    venv.create(folder / "venv", symlinks=True)
    python = folder / "venv" / "bin" / "python"
    install = [str(BIN / "uv"), "pip", "install", "--quiet", "--offline", "--no-deps", f"--python={python}"]
    subprocess.run([*install, str(wheel)], check=True)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (site / "requirements.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return Installed(wheel, python)
