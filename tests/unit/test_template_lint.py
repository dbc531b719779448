"""Lines in a user's templates that a warning is due for, and lines that are fine."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from rendered import SOURCES
from wishes import cell, images, matrix

from ortimg.cli import cli
from ortimg.core.template_lint import template_warnings
from ortimg.factory.run import write_files
from ortimg.project import load_project

BAD = [
    ("RUN curl -k https://x/y", "-k: nobody checks"),
    ("RUN curl -fsSLk https://x/y", "-fsSLk: nobody checks"),
    ("RUN curl --insecure https://x/y", "--insecure: nobody checks"),
    ("RUN wget --no-check-certificate https://x/y", "nobody checks"),
    ("RUN pip install --trusted-host x y", "nobody checks"),
    ("ENV GIT_SSL_NO_VERIFY=1", "nobody checks"),
    ("RUN apt-get upgrade -y", "upgrade: an upgrade makes"),
    ("RUN apt-get update && apt-get -y dist-upgrade", "dist-upgrade: an upgrade makes"),
    ("RUN dnf update -y", "update: an upgrade makes"),
    ("RUN apt-get install -y libcudnn8", "libcudnn8: the image has"),
    ("RUN apt-get install -y libcudnn9-cuda-12", "libcudnn9-cuda-12: the image has"),
    ("RUN microdnf install -y cuda-libraries-12-2", "cuda-libraries-12-2: the image has"),
    ("RUN dpkg -i cuda-keyring_1.1-1_all.deb", "apt refuses both"),
    ("COPY --from=a /opt/onnxruntime/1.20.1/lib/lib*.so* /usr/lib/", "makes a whole file of each link"),
    ("COPY --from=a /x/*.so /usr/lib/", "makes a whole file of each link"),
    ("ENV LD_LIBRARY_PATH=/usr/local/cuda/lib64", "hides what the image was verified with"),
    ("ENV A=1 LD_LIBRARY_PATH=/x", "hides what the image was verified with"),
]
GOOD = [
    "# never curl -k, and no apt-get upgrade",
    "RUN curl --fail --location https://x/y-k -o /z",
    "RUN curl https://x | sort -k 2",
    "RUN apt-get update && apt-get install --yes --no-install-recommends libgomp1",
    "COPY --link --from=ort / /",
    "COPY --from=a /opt/x/lib/libmine.so /opt/x/lib/",
    "RUN microdnf install -y python3",
    "RUN LD_LIBRARY_PATH=/x/lib x-config --check",
]


@pytest.mark.parametrize(("line", "words"), BAD)
def test_a_line_that_people_regret(line: str, words: str) -> None:
    (told,) = template_warnings({"stages/image.j2": f"FROM x\n\n{line}\nRUN a\n"})
    assert told.startswith("templates/stages/image.j2:3: ")
    assert words in told


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_command_of_several_lines(end: str) -> None:
    text = "\n".join(
        ["RUN apt-get update \\", "    && apt-get install -y \\", "        libcudnn8 \\", "        a"]
    )
    (told,) = template_warnings({"a.j2": text.replace("\n", end)})
    assert told.startswith("templates/a.j2:3: libcudnn8: ")


@pytest.mark.parametrize("line", GOOD)
def test_a_line_that_is_fine(line: str) -> None:
    assert template_warnings({"a.j2": line}) == ()


def test_ortimgs_own_templates_are_fine() -> None:
    assert template_warnings(SOURCES.templates) == ()


@pytest.mark.parametrize("option", [(), ("--check",)])
def test_render_tells_it(tmp_path: Path, option: tuple[str, ...]) -> None:
    (tmp_path / "images.yaml").write_text(images(matrix=matrix(["1.16.2"], ["11.8"], ["8"], ["debian12"])))
    (tmp_path / "templates" / "stages").mkdir(parents=True)
    (tmp_path / "templates" / "stages" / "tools.j2").write_text("FROM x AS tools\nRUN apt-get upgrade -y\n")
    result = CliRunner().invoke(cli, ["-C", str(tmp_path), "render", *option])
    assert result.exit_code == (1 if option else 0)
    assert "warning: templates/stages/tools.j2:2: upgrade: " in result.stderr
    assert "warning: templates" not in result.stdout


def test_a_build_tells_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "images.yaml").write_text(images(include=[cell("1.16.2", "11.8")]))
    stages = tmp_path / "templates" / "stages"
    stages.mkdir(parents=True)
    own = SOURCES.templates["stages/base.j2"] + "RUN apt-get update && apt-get upgrade -y\n"
    (stages / "base.j2").write_text(own)
    write_files(load_project(tmp_path))
    line = own.count("\n")
    assert f"warning: templates/stages/base.j2:{line}: upgrade: an upgrade makes" in capsys.readouterr().err
