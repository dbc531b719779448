"""Lay out Python wheels in one folder.

    install_wheels.py --wheels DIR --into DIR

Every wheel of the first folder is installed into the second, as `pip install --target` would. Nothing is
compiled and nothing of the wheels is run, so the Python that runs this need not be the one that they are for.
"""

import argparse
import sys
from pathlib import Path

from installer import install
from installer.destinations import SchemeDictionaryDestination
from installer.sources import WheelFile

PYTHON = "/usr/bin/python3"  # what the wheels' own commands begin with
PARTS = {"purelib": "", "platlib": "", "scripts": "bin", "headers": "include", "data": ""}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--wheels", type=Path, required=True)
    parser.add_argument("--into", type=Path, required=True)
    args = parser.parse_args()
    wheels = sorted(args.wheels.glob("*.whl"))
    if not wheels:
        print(f"no wheel in {args.wheels}", file=sys.stderr)
        return 1
    schemes = {name: str(args.into / part) for name, part in PARTS.items()}
    for wheel in wheels:
        with WheelFile.open(wheel) as source:
            destination = SchemeDictionaryDestination(schemes, interpreter=PYTHON, script_kind="posix")
            install(source, destination, additional_metadata={"INSTALLER": b"ortimg\n"})
    return 0


if __name__ == "__main__":
    sys.exit(main())
