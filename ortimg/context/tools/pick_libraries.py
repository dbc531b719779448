"""Take named shared libraries, and the licences, out of NVIDIA's wheels.

    pick_libraries.py --wheels DIR --into DIR --licenses DIR SONAME...

A wheel is a zip file whose libraries lie in `nvidia/<component>/lib/`. Only what is named is unpacked, so
nothing is written that the image does not carry. It fails if a name is in no wheel, or in two.
"""

import argparse
import shutil
import sys
import zipfile
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--wheels", type=Path, required=True)
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--licenses", type=Path, required=True)
    parser.add_argument("soname", nargs="+")
    args = parser.parse_args()

    wanted = set(args.soname)
    found: dict[str, str] = {}
    args.into.mkdir(parents=True, exist_ok=True)
    for wheel in sorted(args.wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                path = Path(member.filename)
                if path.parent.name == "lib" and path.name in wanted:
                    if path.name in found:
                        print(f"{path.name} is in {found[path.name]} and in {wheel.name}", file=sys.stderr)
                        return 1
                    found[path.name] = wheel.name
                    copy(archive, member, args.into / path.name)
                elif path.name.lower().startswith(("license", "eula")) and ".dist-info" in member.filename:
                    # <licenses>/nvidia-cublas-cu11/License.txt
                    package = wheel.name.split("-")[0].replace("_", "-")
                    copy(archive, member, args.licenses / package / path.name)

    missing = sorted(wanted - found.keys())
    if missing:
        print(f"in no wheel of {args.wheels}: {' '.join(missing)}", file=sys.stderr)
        return 1
    return 0


def copy(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink, 1 << 20)  # zipfile checks the CRC at the end of the member


if __name__ == "__main__":
    sys.exit(main())
