"""Records a real run of ortimg as a picture: docs/images/run.svg, and its words beside it, run.txt.

Run: `python scripts/record_run.py`, on a machine whose cache and engine are warm, else it takes minutes.
Its images go into a repository of their own, `localhost/ortimg-recording`, and are removed at the end. Shown
is what commands print on stdout; the live table on stderr, cleared at the end, is not.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "images"
REPOSITORY = "localhost/ortimg-recording"
WIDTH = 118  # columns
COMMANDS = (
    ["ortimg", "list", "*-debian12"],
    ["ortimg", "build", "--available", "*-debian12"],
    ["ortimg", "verify", "1.16.2-cuda11.8-cudnn8-debian12"],
)


def record(project: Path) -> list[tuple[str, str]]:
    """Each command as it is typed, and what it printed. Raises CalledProcessError where one fails."""
    rows = []
    for command in COMMANDS:
        typed = " ".join(f"'{word}'" if "*" in word else word for word in command)
        program = Path(sys.executable).parent / command[0]
        done = subprocess.run(
            [program, *command[1:]], cwd=project, stdout=subprocess.PIPE, text=True, check=True
        )
        rows.append((typed, done.stdout))
    return rows


def picture(rows: list[tuple[str, str]]) -> str:
    """An SVG that asks for no font of another host."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    for typed, printed in rows:
        console.print(Text.assemble(("$ ", "green"), (typed, "bold")))
        console.print(Text(printed))
    drawn = console.export_svg(
        title="ortimg",
        unique_id="run",
        code_format=re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.S),
    )
    # A reader without eyes for it, or with a broken link, gets the words.
    words = f"<title>ortimg</title><desc>{REPOSITORY}: the text of this picture is in run.txt</desc>"
    return re.sub(r"(<svg[^>]*>)", rf"\1{words}", drawn, count=1)


def main() -> None:
    """Records, and writes both files."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        text = (ROOT / "images.yaml").read_text("utf-8")
        (project / "images.yaml").write_text(
            re.sub(r"^repository: \S+", f"repository: {REPOSITORY}", text, flags=re.M), "utf-8"
        )
        for name in ("images.lock", "templates"):
            path = ROOT / name
            (shutil.copytree if path.is_dir() else shutil.copyfile)(path, project / name)
        try:
            rows = record(project)
        finally:
            _remove()
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "run.svg").write_text(picture(rows), "utf-8")
    words = "".join(f"$ {typed}\n{printed}\n" for typed, printed in rows)
    (FOLDER / "run.txt").write_text(words.rstrip("\n") + "\n", "utf-8")


def _remove() -> None:
    """The images of this recording, by their names; their layers are those of others, and stay."""
    listed = subprocess.run(
        ["docker", "images", "--format", "{{.Repository}}:{{.Tag}}", REPOSITORY],
        capture_output=True,
        text=True,
        check=True,
    )
    names = listed.stdout.split()
    if names:
        subprocess.run(["docker", "rmi", *names], stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
