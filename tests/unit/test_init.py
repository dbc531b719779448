"""`ortimg init`: what it writes, and that it never touches what is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ortimg import __version__
from ortimg.cli import cli
from ortimg.sources import builtin_templates

STARTER = ("images.yaml", "Makefile", "README.md", ".gitignore", ".github/workflows/images.yml")


def ortimg(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_new_repository_can_be_used_at_once(tmp_path: Path) -> None:
    result = ortimg("init", str(tmp_path / "new" / "images"))
    assert result.exit_code == 0
    folder = tmp_path / "new" / "images"
    assert tree(folder).keys() == {*STARTER}
    assert result.stdout.splitlines()[:-1] == [f"wrote: {folder / name}" for name in STARTER]
    assert result.stdout.splitlines()[-1].startswith(f"Next: cd {folder}, ")
    listed = ortimg("-C", str(folder), "list")
    assert listed.stdout.splitlines() == [
        "1.23.2-cuda12.6-cudnn9-debian12     latest",
        "1.23.2-cuda12.6-cudnn9-ubuntu24.04",
    ]
    assert ortimg("-C", str(folder), "render").exit_code == 0
    assert ortimg("-C", str(folder), "render", "--check").exit_code == 0


def test_the_examples_in_images_yaml_are_right(tmp_path: Path) -> None:
    ortimg("init", str(tmp_path))
    path = tmp_path / "images.yaml"
    text = path.read_text().replace("# include:", "include:").replace("# exclude:", "exclude:")
    text = text.replace('["1.23.2"]', '["1.22.0", "1.23.2"]', 1).replace("#   - {", "  - {")
    path.write_text(text)
    result = ortimg("-C", str(tmp_path), "list")
    assert result.stdout.splitlines() == [
        "1.22.0-cuda12.6-cudnn9-debian12",
        "1.23.2-cuda12.6-cudnn9-debian12     latest",
        "1.23.2-cuda12.6-cudnn9-ubuntu24.04",
        "1.16.2-cuda11.8-cudnn8-debian12",
    ], result.stderr


def test_the_makefile_pins_the_version(tmp_path: Path) -> None:
    ortimg("init", str(tmp_path))
    assert f"\nVERSION := {__version__}\n" in (tmp_path / "Makefile").read_text()
    assert not [path for path, data in tree(tmp_path).items() if b"@VERSION@" in data]


def test_nothing_that_is_there_is_changed(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("mine\n")
    (tmp_path / "README.md").symlink_to("nowhere")
    (tmp_path / ".gitignore").mkdir()
    result = ortimg("-C", str(tmp_path), "init")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[:4] == [
        f"wrote: {tmp_path}/images.yaml",
        f"left alone: {tmp_path}/Makefile",
        f"left alone: {tmp_path}/README.md",
        f"left alone: {tmp_path}/.gitignore",
    ]
    assert (tmp_path / "Makefile").read_text() == "mine\n"
    assert (tmp_path / "README.md").readlink() == Path("nowhere")
    assert not (tmp_path / "nowhere").exists()
    before = tree(tmp_path)
    again = ortimg("-C", str(tmp_path), "init")
    assert again.exit_code == 0
    assert "wrote" not in again.stdout
    assert "Next" not in again.stdout
    assert tree(tmp_path) == before


def test_templates_are_copies_and_change_nothing_yet(tmp_path: Path) -> None:
    ortimg("init", str(tmp_path))
    ortimg("-C", str(tmp_path), "render")
    result = ortimg("init", "--templates", str(tmp_path))
    assert result.exit_code == 0
    assert tree(tmp_path / "templates") == tree(builtin_templates())
    assert ortimg("-C", str(tmp_path), "render", "--check").exit_code == 0
    changed = tmp_path / "templates" / "stages" / "tools.j2"
    changed.write_text(changed.read_text().replace(" --no-cache-dir", " --no-cache-dir --isolated"))
    check = ortimg("-C", str(tmp_path), "render", "--check")
    assert check.exit_code == 1
    assert "\n+    python3 -m pip install --no-cache-dir --isolated " in check.stdout


@pytest.mark.parametrize("below", ["", "/folder", "/folder/below"])
def test_a_file_where_the_folder_should_be(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("mine\n")
    result = ortimg("init", f"{tmp_path}/file{below}")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: {tmp_path}/file")
    assert len(result.stderr.splitlines()) <= 2
    assert (tmp_path / "file").read_text() == "mine\n"


def test_a_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource
    import signal

    monkeypatch.setattr("ortimg.starter.__version__", "1" * 100_000)  # the Makefile is too large now
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        result = ortimg("init", str(tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert result.exit_code != 0
    assert tree(tmp_path).keys() == {"images.yaml"}
