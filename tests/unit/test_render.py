"""Rendered Dockerfiles: what holds for all cells, and what a template may do."""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rendered import (
    REPOSITORY,
    SOURCES,
    all_cells,
    all_files,
    dockerfiles,
    heredocs,
    one,
    with_template,
)
from wishes import CATALOGUE, images, planned
from wishes import cell as wish

from ortimg.core.model import Cell
from ortimg.core.render import BAKE_FILE, Pins, dockerfile_path, render
from ortimg.core.stages import closure, split_stages
from ortimg.errors import ConfigError
from ortimg.sources import read_sources

HASH = re.compile(r"\b[0-9a-f]{64}\b")


def get_cell(ort: str, cuda: str, cudnn: str = "8", base: str = "debian12") -> Cell:
    return planned(images(include=[wish(ort, cuda, cudnn, base)])).cells[0]


CELL = get_cell("1.16.2", "11.8")


# cells of the whole catalogue


def test_the_whole_catalogue_is_looked_at() -> None:
    cells = all_cells()
    assert {row.key for row in CATALOGUE.cuda_sets} == {cell.cuda_set.key for cell in cells}
    assert len({cell.release.key for cell in cells}) > 30
    assert {cell.release.cuda_major for cell in cells} >= {11, 12}
    assert {cell.base.name for cell in cells} >= {"debian12", "debian13", "ubuntu24.04", "rocky9"}
    assert len(all_files()) == len(cells) + len(SOURCES.context) + 1


def test_stages_and_their_order() -> None:
    named = {"tools", "ort-archive", "cuda-archive", "ort-verify", "cuda-stub", "ort", "cuda", "base"}
    for identifier, text in dockerfiles().items():
        stages = split_stages(text)
        assert next(iter(stages)) == "tools", identifier
        assert [*stages][-1] == "", identifier
        assert named <= stages.keys(), identifier
        before: set[str] = set()
        for name, stage in stages.items():
            assert {*stage.uses} <= before, f"{identifier}: {name} uses a stage that comes after it"
            before.add(name)


def test_units_are_the_same_text_in_every_cell_that_shares_them() -> None:
    texts: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for cell in all_cells():
        header, *parts = dockerfiles()[cell.identifier].split("\n# ---- ")
        assert header.startswith(f"# {cell.identifier}\n")
        for part in parts:
            name = part.partition(":")[0]
            key = {
                "ort-archive": (cell.release.key,),
                "ort": (cell.release.key,),
                "cuda-archive": (cell.cuda_set.key,),
                "cuda": (cell.cuda_set.key,),
                "tools": (),
                "ort-verify": (),
                "base": (cell.base.name,),
                "the image": (cell.identifier,),
            }[name]
            texts[name, *key].add(part)  # comments included
    assert {len(different) for different in texts.values()} == {1}
    assert {name for name, *_ in texts} >= {
        "ort-archive",
        "ort",
        "cuda-archive",
        "cuda",
        "tools",
        "ort-verify",
    }


def test_units_do_not_stand_on_the_base() -> None:
    for identifier, text in dockerfiles().items():
        stages = split_stages(text)
        for name in ("cuda", "ort", "ort-verify", "cuda-stub"):
            assert "base" not in {stage.name for stage in closure(stages, name, frozenset())}, identifier
        assert [name for name, stage in stages.items() if "base" in stage.uses] == [""], identifier


def test_the_last_stage_has_no_network_and_no_package_manager() -> None:
    for identifier, text in dockerfiles().items():
        last = split_stages(text)[""].text
        assert not re.search(r"\b(apt|apt-get|dnf|microdnf|yum|apk|pip|curl|wget)\b", last), identifier
        assert all("--network=none" in line for line in re.findall(r"^RUN .*", last, re.MULTILINE)), (
            identifier
        )
        assert len(re.findall(r"^COPY ", last, re.MULTILINE)) == len(
            re.findall(r"^COPY --link ", last, re.MULTILINE)
        ), identifier


def test_only_downloads_have_a_network() -> None:
    for identifier, text in dockerfiles().items():
        for run in re.findall(r"^RUN (?:.*\\\n)*.*", text, re.MULTILINE):
            assert ("--network=none" in run) != ("pip " in run), (identifier, run)


def test_pip_takes_only_what_is_pinned_by_hash() -> None:
    for identifier, text in dockerfiles().items():
        for run in re.findall(r"pip (?:install|download)(?:.*\\\n)*.*", text):
            assert "--require-hashes" in run, (identifier, run)


@pytest.mark.parametrize(
    "option",
    ["-k", "--insecure", "--no-check-certificate", "--trusted-host", "GIT_SSL_NO_VERIFY", "http://"],
)
def test_no_connection_goes_unchecked(option: str) -> None:
    alone = re.compile(rf"(?<![\w-]){re.escape(option)}(?![\w-])")
    guilty = [
        path for path, text in all_files().items() if alone.search(text) and path.endswith("/Dockerfile")
    ]
    assert not guilty
    assert alone.search(f"curl {option} x")  # the pattern can find it


def test_scripts_stop_at_the_first_error_and_show_each_command() -> None:
    scripts = 0
    for identifier, text in dockerfiles().items():
        for heredoc in heredocs(text):
            if heredoc.instruction == "RUN":
                scripts += 1
                assert heredoc.lines[0] == "set -eux", identifier
            # hadolint does not parse a file without it
            assert heredoc.following == "", identifier
    assert scripts == 3 * len(dockerfiles())


def test_no_syntax_line_since_it_would_pull_an_image() -> None:
    for text in dockerfiles().values():
        assert not re.search(r"^#\s*(syntax|escape)\s*=", text, re.MULTILINE)


def test_nothing_of_this_machine_and_no_time_in_any_file() -> None:
    here = {
        str(Path.cwd()),
        str(Path.home()),
        str(Path(__file__).parents[2]),
        socket.gethostname(),
        "/tmp/pytest",
    }
    here |= {getpass.getuser()} - {"root"}
    for path, text in all_files().items():
        # Whole words: a host may be called "vm", and libraries "nvml".
        assert not [word for word in here if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)], path
        if path.endswith("/Dockerfile"):
            assert not re.search(r"\b20\d\d-\d\d-\d\d\b|\b\d\d:\d\d:\d\d\b", text), path


def test_text_files_as_they_should_be() -> None:
    for path, text in all_files().items():
        assert text.endswith("\n"), path
        assert "\r" not in text, path
        if path.endswith("/Dockerfile"):
            assert not text.endswith("\n\n"), path
            assert not re.search(r"[ \t]$", text, re.MULTILINE), path
            assert text.isascii(), path


def test_the_library_path_is_not_set() -> None:
    for text in dockerfiles().values():
        assert not re.search(r"^\s*(ENV\s+)?LD_LIBRARY_PATH=", text, re.MULTILINE)
        assert "/etc/ld.so.conf.d/" in text


def test_hashes_come_from_the_catalogue() -> None:
    tools = {*HASH.findall(SOURCES.context["tools/requirements.txt"])}
    assert tools
    for cell in all_cells():
        text = dockerfiles()[cell.identifier]
        known = {wheel.sha256 for wheel in cell.cuda_set.wheels} | {cell.release.sha256}
        assert {*HASH.findall(text)} == known - {None}, cell.identifier
        if cell.release.sha256 is None:
            assert "ADD --checksum" not in text
            assert "# No public source states this archive's sha256" in text
        else:
            assert f"ADD --checksum=sha256:{cell.release.sha256} \\\n    {cell.release.url} \\\n" in text


def test_the_manifest_in_the_file_is_json() -> None:
    for cell in all_cells():
        text = dockerfiles()[cell.identifier]
        documents = re.findall(r"<<'JSON'\n(.*?)\nJSON\n", text, re.DOTALL)
        (document,) = documents
        manifest = json.loads(document)
        assert manifest["identifier"] == cell.identifier
        assert manifest["cuda"]["libraries"] == [*cell.cuda_set.libraries]


# pins of the lock


def test_a_hash_from_the_lock_is_checked() -> None:
    unknown = get_cell("1.18.0", "12.2")
    assert unknown.release.sha256 is None
    text = one(unknown, pins=Pins(ort_sha256={"1.18.0-cuda12": "a" * 64}))
    assert f"ADD --checksum=sha256:{'a' * 64} \\\n" in text
    assert "No public source" not in text


def test_a_resolved_base_is_pinned() -> None:
    text = one(CELL, pins=Pins(base_digest={"debian12": f"sha256:{'b' * 64}"}))
    assert f"FROM debian:12-slim@sha256:{'b' * 64} AS base\n" in text
    assert "FROM debian:12-slim AS base\n" in one(CELL)


# the same cells give the same bytes


@settings(max_examples=8, deadline=None)
@given(st.data())
def test_a_cells_text_depends_on_nothing_but_the_cell(data: st.DataObject) -> None:
    some = data.draw(st.lists(st.sampled_from(all_cells()), min_size=1, max_size=4, unique_by=id))
    for cell in data.draw(st.permutations(some)):
        assert one(cell) == dockerfiles()[cell.identifier]
    shuffled = render(REPOSITORY, data.draw(st.permutations(some)), SOURCES)
    straight = render(REPOSITORY, some, SOURCES)
    assert [*shuffled] == [*straight]  # paths come sorted
    assert {k: v for k, v in shuffled.items() if k != BAKE_FILE} == {
        k: v for k, v in straight.items() if k != BAKE_FILE
    }


def test_another_process_another_folder_another_day(tmp_path: Path) -> None:
    program = (
        "import hashlib, sys; sys.path.insert(0, sys.argv[1])\n"
        "from rendered import *\n"
        "files = render('r', all_cells()[::9], SOURCES)\n"
        "print(hashlib.sha256(repr(files).encode()).hexdigest())"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(Path(__file__).parent)],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "HOME": folder, "LC_ALL": "C"},
            cwd=folder,
            stdout=subprocess.PIPE,
        )
        for seed, zone, folder in (("1", "UTC", "/"), ("2", "Asia/Tokyo", str(tmp_path)))
    ]
    first, second = (process.communicate()[0] for process in processes)
    assert [process.returncode for process in processes] == [0, 0]
    assert first == second


# templates of a user

BAD = {
    "{{ cudnn_majr }}": "2: 'cudnn_majr' is undefined (cell 1.16.2-cuda11.8-cudnn8-debian12)",
    "{{ cell.nope }}": "2: 'cell' is undefined (cell 1.16.2-cuda11.8-cudnn8-debian12)",
    "{{ cuda.nope }}": "2: 'dict object' has no attribute 'nope' (cell 1.16.2-cuda11.8-cudnn8-debian12)",
    "{% if cuda.nope %}x{% endif %}": "2: 'dict object' has no attribute 'nope'",
    "{{ cuda.version + 1 }}": "2: can only concatenate str",
    "{{ 1 // 0 }}": "2: integer division or modulo by zero",
    "{% for x in 5 %}{% endfor %}": "2: 'int' object is not iterable",
    "{% if %}": "2: Expected an expression",
    "{{ cuda.version | nofilter }}": "2: No filter named 'nofilter'",
}


@pytest.mark.parametrize("line", BAD)
def test_a_fault_in_a_template_is_named_by_file_and_line(line: str) -> None:
    sources = with_template("stages/tools.j2", f"FROM scratch AS tools\n{line}\nCOPY a b\n")
    with pytest.raises(ConfigError) as caught:
        one(CELL, sources)
    assert str(caught.value).startswith(f"templates/stages/tools.j2:{BAD[line]}")


def test_a_partial_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r"^templates/stages/mine\.j2: no such template$"):
        one(CELL, with_template("Dockerfile.j2", '{% include "stages/mine.j2" %}\n'))


TOOLS = SOURCES.templates["stages/tools.j2"]


@pytest.mark.parametrize(
    "text",
    [
        TOOLS.replace("\n", "\r\n"),
        TOOLS.rstrip("\n"),
        TOOLS + "\n\n",
        TOOLS.replace("\\\n", "\\  \n"),
        TOOLS.replace("\\\n", "\\\t\r\n").rstrip(),
        TOOLS.replace("AS tools\n", "AS tools   \n"),
    ],
    ids=[
        "CRLF",
        "no last newline",
        "many newlines",
        "blank after a backslash",
        "all of it",
        "blank at the end",
    ],
)
def test_what_editors_do_to_a_template_changes_nothing(text: str) -> None:
    assert text != TOOLS
    assert one(CELL, with_template("stages/tools.j2", text)) == one(CELL)


def test_crlf_in_every_template() -> None:
    windows = {name: text.replace("\n", "\r\n") for name, text in SOURCES.templates.items()}
    assert one(CELL, msgspec.structs.replace(SOURCES, templates=windows)) == one(CELL)


@pytest.mark.parametrize("name", ["cuda", "ort", "ort-devel", "ort-verify", "cuda-stub", "base"])
def test_a_template_without_a_stage_that_builds_go_by_is_refused(name: str) -> None:
    (cell,) = planned(images(include=[wish("1.23.2", "12.6", "9", flavour="devel")])).cells
    renamed = {
        key: text.replace(f" AS {name}\n", f" AS {name}-of-mine\n") for key, text in SOURCES.templates.items()
    }
    with pytest.raises(ConfigError) as caught:
        one(cell, msgspec.structs.replace(SOURCES, templates=renamed))
    assert str(caught.value) == (
        f'dockerfiles/{cell.identifier}/Dockerfile: no stage "{name}": `ortimg build` makes it once for all; '
        f"keep `FROM … AS {name}`\nSee the folder templates/."
    )


def test_a_template_that_names_the_last_stage_is_refused() -> None:
    text = SOURCES.templates["stages/image.j2"].replace('else "ort" }}', 'else "ort" }} AS mine')
    with pytest.raises(ConfigError, match="no stage without a name"):
        one(all_cells()[0], with_template("stages/image.j2", text))


def test_a_runtime_cell_needs_no_stage_of_devel() -> None:
    assert "ort-devel" not in one(all_cells()[0])


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        ("RUN a \\\n    {% if false %}b{% endif %} \\\n    c\n", 10, "a backslash alone on its line"),
        ("RUN a \\\n\n    c\n", 9, "continued, but the next line is empty"),
        ("RUN a \\\n", 9, "continued, but the next line is empty"),
        ("RUN a \\", 9, "continued, but the next line is empty"),
    ],
)
def test_a_backslash_that_swallows_what_follows(lines: str, line: int, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        one(CELL, with_template("stages/tools.j2", lines))
    first, second = str(caught.value).splitlines()
    assert first == f"dockerfiles/1.16.2-cuda11.8-cudnn8-debian12/Dockerfile:{line}: {words}"
    assert "template" in second


def test_a_template_error_in_the_last_cell_gives_no_file_at_all() -> None:
    """Only 1.18.0 for CUDA 12 has no known hash."""
    cells = [CELL, get_cell("1.18.0", "12.2")]
    sources = with_template("stages/ort-archive.j2", "{% if not ort.sha256 %}{{ oops }}{% endif %}\n")
    assert one(CELL, sources)
    with pytest.raises(
        ConfigError, match=r"^templates/stages/ort-archive\.j2:1: 'oops' is undefined \(cell 1\.18"
    ):
        render(REPOSITORY, cells, sources)


# reading templates from a folder


def test_a_users_templates_replace_by_name(tmp_path: Path) -> None:
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages" / "tools.j2").write_bytes(b'{% include "stages/mine.j2" %}\r\nFROM scratch AS tools')
    (tmp_path / "stages" / "mine.j2").write_text("# mine\n")
    text = one(CELL, read_sources(tmp_path))
    assert "\n# mine\nFROM scratch AS tools\n\n# ---- ort-archive" in text


def test_a_template_that_replaces_nothing_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "templates"
    (folder / "stages").mkdir(parents=True)
    (folder / "stages" / "toolz.j2").write_text("x\n")
    (folder / "stages" / "ort_archive.j2").write_text("x\n")
    with pytest.raises(ConfigError) as caught:
        read_sources(folder)
    assert caught.value.problems == (
        "templates/stages/ort_archive.j2: replaces no template of ortimg",
        "templates/stages/toolz.j2: replaces no template of ortimg",
    )
    assert "stages/tools.j2" in str(caught.value.hint)


def test_no_templates_folder_is_no_fault(tmp_path: Path) -> None:
    assert read_sources(tmp_path / "templates").templates == SOURCES.templates


def test_paths() -> None:
    assert dockerfile_path(CELL) == "dockerfiles/1.16.2-cuda11.8-cudnn8-debian12/Dockerfile"
    assert {path.split("/")[0] for path in all_files()} == {"dockerfiles", BAKE_FILE}


def test_the_user_of_a_base_is_the_user_of_its_images() -> None:
    [cell] = planned(images(include=[wish("1.16.2", "11.8")])).cells
    other = msgspec.structs.replace(cell, base=msgspec.structs.replace(cell.base, user="1001"))
    plain, own = (
        render("x", [one], read_sources())[dockerfile_path(one)].splitlines() for one in (cell, other)
    )
    assert not any(line.startswith("USER") for line in plain)
    assert own[-2:] == ["USER 1001", plain[-1]], "last, so that no step of the build runs as that user"
