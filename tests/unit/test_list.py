"""`ortimg list` and the frame around every command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from wishes import RULES, cell, images, matrix

from ortimg import __version__
from ortimg.cli import VERBS, cli
from ortimg.errors import ConfigError, EnvironmentFault

IMAGES = images(
    matrix=matrix(["1.16.2", "1.17.1"], ["11.8", "12.2"], ["8"], ["debian12", "debian13"]),
    include=[cell("1.23.2", "12.6", "9")],
    exclude=[{"ort": "1.17.1", "base": "debian13", "reason": "nobody asked for it"}],
    tags={"latest": "1.23.2-cuda12.6-cudnn9-debian12"},
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "images.yaml").write_text(IMAGES)
    return tmp_path


def ortimg(*arguments: str, folder: Path | None = None) -> Result:
    place = ["-C", str(folder)] if folder else []
    return CliRunner().invoke(cli, [*place, *arguments])


def test_table(project: Path) -> None:
    result = ortimg("list", folder=project)
    assert result.exit_code == 0
    assert result.stdout == (
        "1.16.2-cuda11.8-cudnn8-debian12\n"
        "1.16.2-cuda11.8-cudnn8-debian13\n"
        "1.17.1-cuda11.8-cudnn8-debian12\n"
        "1.17.1-cuda12.2-cudnn8-debian12\n"
        "1.23.2-cuda12.6-cudnn9-debian12  latest\n"
    )
    assert result.stderr == ""


def test_selectors(project: Path) -> None:
    result = ortimg("list", "1.1*", "latest", "--skip", "*debian13", "--skip", "1.17.1-*", folder=project)
    assert result.stdout.splitlines() == [
        "1.16.2-cuda11.8-cudnn8-debian12",
        "1.23.2-cuda12.6-cudnn9-debian12  latest",
    ]


def test_excluded(project: Path) -> None:
    result = ortimg("list", "--excluded", folder=project)
    assert result.stdout == (
        "ONNX Runtime 1.16.2 has no release archive for CUDA 12; it has one for CUDA 11 (cuDNN 8)\n"
        "  1.16.2-cuda12.2-cudnn8-debian12  (nearest: 1.16.2-cuda11.8-cudnn8-debian12)\n"
        "  1.16.2-cuda12.2-cudnn8-debian13  (nearest: 1.16.2-cuda11.8-cudnn8-debian13)\n"
        "nobody asked for it\n"
        "  1.17.1-cuda11.8-cudnn8-debian13  (excluded by images.yaml)\n"
        "  1.17.1-cuda12.2-cudnn8-debian13  (excluded by images.yaml)\n"
    )


def test_warnings(tmp_path: Path) -> None:
    rows = [cell("1.16.3", "11.8", base=base) for base in ("debian12", "debian13")]
    (tmp_path / "images.yaml").write_text(images(include=rows))
    result = ortimg("list", folder=tmp_path)
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 2
    assert result.stderr.startswith("warning: 1.16.3-cuda11.8-cudnn8-debian13: ")
    assert "executable stack, which glibc 2.41 and later refuse; Debian 13 (trixie) has 2.41" in result.stderr
    (row,) = json.loads(ortimg("list", "--json", folder=tmp_path).stdout)["warnings"]
    assert row["identifier"] == "1.16.3-cuda11.8-cudnn8-debian13"
    assert f": {row['warning']}\n" in result.stderr


def test_nothing_excluded(tmp_path: Path) -> None:
    (tmp_path / "images.yaml").write_text(images(include=[cell("1.16.2", "11.8")]))
    assert (
        ortimg("list", "--excluded", folder=tmp_path).stdout == "Every combination of the matrix is built.\n"
    )


def test_json(project: Path) -> None:
    data = json.loads(ortimg("list", "--json", folder=project).stdout)
    assert data["schema"] == 1
    assert data["cells"][-1] == {
        "identifier": "1.23.2-cuda12.6-cudnn9-debian12",
        "ort": "1.23.2",
        "cuda": "12.6",
        "cudnn": "9",
        "base": "debian12",
        "flavour": "runtime",
        "tags": ["latest"],
        "verdicts": [],
    }
    assert data["excluded"][0] == {
        "ort": "1.16.2",
        "cuda": "12.2",
        "cudnn": "8",
        "base": "debian12",
        "flavour": "runtime",
        "reason": "ONNX Runtime 1.16.2 has no release archive for CUDA 12; it has one for CUDA 11 (cuDNN 8)",
        "nearest": "1.16.2-cuda11.8-cudnn8-debian12",
    }
    wishes = [row for row in data["excluded"] if row["nearest"] is None]
    assert {row["reason"] for row in wishes} == {"nobody asked for it"}
    assert len(data["cells"]) + len(data["excluded"]) == 9


@pytest.mark.parametrize(
    ("arguments", "words", "next_step"),
    [
        (["list", "1.99*"], '"1.99*" matches no cell', "`ortimg list` shows every cell."),
        (["list", "--nope"], "No such option", "Try `ortimg list --help`."),
        (["lsit"], "no command 'lsit'. Did you mean list?", "Try `ortimg --help`."),
        (["verify", ""], "an empty TARGET", "Name an image, a folder or a selector."),
        (["frobnicate"], "Commands are init, list, fit", "Try `ortimg --help`."),
    ],
)
def test_wrong_use(project: Path, arguments: list[str], words: str, next_step: str) -> None:
    result = ortimg(*arguments, folder=project)
    assert result.exit_code == 2
    assert result.stdout == ""
    first, second = result.stderr.splitlines()
    assert first.startswith("error: ")
    assert words in first
    assert second == next_step


def test_no_images_yaml(tmp_path: Path) -> None:
    result = ortimg("list", folder=tmp_path)
    assert result.exit_code == 2
    assert result.stderr == (
        f"error: there is no images.yaml in {tmp_path}\n"
        "Run `ortimg init` there to start one, or name another folder with --project.\n"
    )


def test_faults_of_a_file_can_be_clicked(tmp_path: Path) -> None:
    (tmp_path / "images.yaml").write_text(
        "repository: r\ninclude:\n  - {ort: 1.20, cuda: '12.6', cudnn: '9'}\n"
    )
    result = ortimg("list", folder=tmp_path)
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        'images.yaml:3: include[0].ort: YAML reads 1.20 as the number 1.2; write "1.20"',
        'images.yaml:3: include[0]: "base" is missing',
    ]


def test_help_names_every_verb_and_imports_none() -> None:
    code = (
        "import sys; from ortimg.cli import cli; cli(['--help'], standalone_mode=False); print(*sys.modules)"
    )
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    text, modules = output.rsplit("\n", 2)[:2]
    assert all(f"\n  {verb} " in text for verb in VERBS)
    assert not {name for name in modules.split() if name.startswith("ortimg.commands.")}


def test_no_command_shows_the_help() -> None:
    result = ortimg()
    assert result.exit_code == 2
    assert result.stderr.startswith("Usage: ortimg [OPTIONS] COMMAND")


def test_version() -> None:
    assert ortimg("--version").stdout == f"ortimg, version {__version__}\n"


# At its end, the process tells on stderr what it has imported.
WITH_MODULES = """
import atexit, sys
from ortimg.cli import main
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
main()
"""


def run(
    project: Path, *arguments: str, code: str = "from ortimg.cli import main; main()", **environment: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, "-C", str(project), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


def test_a_real_process_and_what_it_imports(project: Path) -> None:
    process = run(project, "list", "--json", code=WITH_MODULES)
    assert process.returncode == 0
    assert len(json.loads(process.stdout)["cells"]) == 5
    imported = set(process.stderr.split())
    assert "ortimg.commands.list" in imported
    heavy = {"docker", "requests", "rich", "jinja2", "elftools", "jsonschema", "asyncio", "ssl", "urllib3"}
    assert not heavy & imported


def test_a_traceback_only_on_demand(tmp_path: Path) -> None:
    quiet, loud = run(tmp_path, "list", ORTIMG_DEBUG=""), run(tmp_path, "list", ORTIMG_DEBUG="1")
    assert quiet.returncode == loud.returncode == 2
    assert "Traceback" not in quiet.stderr
    assert "Traceback" in loud.stderr


def test_the_reader_of_a_pipe_goes_away(project: Path) -> None:
    command = [sys.executable, "-m", "ortimg", "-C", str(project), "list"]
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True)
    os.close(write_end)
    assert process.stderr == ""
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (
            EnvironmentFault("no engine answers", hint="Run `make engine`."),
            3,
            "error: no engine answers\nRun",
        ),
        (EnvironmentFault("127.0.0.1:1: connection refused"), 3, "error: 127.0.0.1:1: connection refused\n"),
        (ConfigError("images.yaml:4: repository: is empty"), 2, "images.yaml:4: repository: is empty\n"),
        (OSError(28, "No space left on device", "/x"), 3, "error: /x: No space left on device\n"),
        (click.UsageError("wrong"), 2, "error: wrong\n"),
    ],
)
def test_exit_codes(monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, words: str) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(type(cli), "get_command", lambda *_: click.Command("list", callback=fail))
    result = ortimg("list")
    assert result.exit_code == code
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise KeyError("bug")

    monkeypatch.setattr(type(cli), "get_command", lambda *_: click.Command("list", callback=fail))
    assert isinstance(ortimg("list").exception, KeyError)


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A shell, in which $ORTIMG is the command."""
    env = os.environ | {"ORTIMG": f"{sys.executable} -m ortimg"}
    return subprocess.run(
        ["sh", "-c", script], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def test_a_closed_output_is_no_fault(project: Path) -> None:
    done = shell("$ORTIMG list >&-", project)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_output_is_the_machines_fault(project: Path) -> None:
    done = shell("$ORTIMG list >/dev/full", project)
    assert done.returncode == 3
    assert done.stderr.splitlines()[0].endswith("No space left on device")
    assert len(done.stderr.splitlines()) == 2


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    done = shell("mkdir gone && cd gone && rmdir ../gone && $ORTIMG list", tmp_path)
    assert done.returncode == 2
    assert done.stderr == "error: the current folder is not there any more\nGo to another one.\n"


def test_sigterm_ends_as_ctrl_c_does(project: Path) -> None:
    versions = [*dict.fromkeys(release.version for release, _ in RULES.ranked("1.16.2", "11.8", "8"))]
    bases = ["debian12", "debian13", "ubuntu22.04", "ubuntu24.04", "rocky9"]
    wishes = matrix(versions, ["11.8", "12.2", "12.6", "13.0"], ["8", "9"], bases)
    (project / "images.yaml").write_text(images(matrix=wishes))
    command = [sys.executable, "-m", "ortimg", "-C", str(project), "list", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(1)  # it is under way, and waits: a pipe holds less than it has to say
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=30)[1].strip() == b"interrupted"
    assert process.returncode == 130


def test_ctrl_c_before_anything_is_imported() -> None:
    code = """
import sys
class Early:
    def find_spec(self, name, *more):
        if name == sys.argv[1]: raise KeyboardInterrupt
sys.meta_path.insert(0, Early())
from ortimg.__main__ import main
main()
"""
    for module in ("ortimg.cli", "click", "ortimg.errors"):
        command = [sys.executable, "-c", code, module]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (130, "interrupted\n")
