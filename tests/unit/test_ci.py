"""`ortimg ci`: pipelines that the CI systems accept, and that `ortimg render` keeps up to date."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from wishes import cell, images

from ortimg.ci.pipeline import System, Wish, wish_of
from ortimg.cli import cli
from ortimg.generated import PIPELINE_MARK

ROOT = Path(__file__).parents[2]
TOOLS = Path(os.environ.get("ORTIMG_TOOLS") or Path.home() / ".cache" / "ortimg-tools")
SCHEMAS = {System.GITHUB: "vendor.github-workflows", System.GITLAB: "vendor.gitlab-ci"}
OPTIONS = {
    "plain": (),
    "published": ("--registry-prefix", "registry.example.com/team"),
    "gpu": ("--registry-prefix", "ghcr.io/team", "--gpu-runner", "gpu", "--runner", "big"),
    "own": ("--install", "pip install '.[test]' # here", "--also", "make test", "--also", "echo 'a: b'"),
    "hub": ("--registry-prefix", "docker.io/team", "--branch", "release/1.x", "--max-disk", "100GB"),
}


class _Loader(yaml.SafeLoader):
    """GitLab's `!reference [job, key]` is a list here."""


_Loader.add_constructor("!reference", lambda loader, node: loader.construct_sequence(node))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    text = images(include=[cell("1.16.2", "11.8"), cell("1.23.2", "12.6", "9"), cell("1.30.0", "13.0", "9")])
    (tmp_path / "images.yaml").write_text(text)
    return tmp_path


def ortimg(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["-C", str(folder), *arguments])


def made(folder: Path, system: System, *options: str) -> str:
    result = ortimg(folder, "ci", system.value, *options)
    assert result.exit_code == 0, result.output
    return result.stdout


every_pipeline = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
every_system = pytest.mark.parametrize("system", System)


def all_made(project: Path, system: System) -> list[Path]:
    """A file for each set of options."""
    folder = project / "all"
    folder.mkdir()
    for name, options in OPTIONS.items():
        (folder / f"{name}.yml").write_text(made(project, system, *options))
    return sorted(folder.iterdir())


@every_system
def test_the_systems_own_schema_takes_it(project: Path, system: System) -> None:
    """The schemas are SchemaStore's and GitLab's, as check-jsonschema carries them with their licences."""
    command = [Path(sys.executable).parent / "check-jsonschema", "--builtin-schema", SCHEMAS[system]]
    if system is System.GITLAB:
        command += ["--data-transform", "gitlab-ci"]
    done = subprocess.run([*command, *all_made(project, system)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_actionlint_finds_nothing(project: Path) -> None:
    program = shutil.which("actionlint", path=f"{TOOLS / 'bin'}:{os.environ['PATH']}")
    if program is None:
        pytest.skip("actionlint is not there: `make actionlint` builds it")
    config = project / "actionlint.yaml"
    config.write_text("self-hosted-runner: {labels: [gpu, big]}\n")
    done = subprocess.run(
        [program, "-shellcheck=", "-config-file", config, *all_made(project, System.GITHUB)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@every_system
@every_pipeline
def test_only_commands_and_options_that_exist_are_used(
    project: Path, system: System, options: tuple[str, ...]
) -> None:
    text = made(project, system, *options).replace(">-\n", "").replace("\n          --", " --")
    used = [line for line in re.findall(r"\bortimg ([a-z]+ --[^|\n<]*)", text) if not line.startswith("ci ")]
    assert used
    for line in used:
        verb, *words = line.split()
        command = cli.get_command(None, verb)  # type: ignore[arg-type]
        assert command is not None, verb
        known = {name for option in command.params for name in option.opts}
        assert {word for word in words if word.startswith("--")} <= known, line


@every_system
def test_shards_are_what_the_disk_asks_for(project: Path, system: System) -> None:
    assert '["1/3", "2/3", "3/3"]' in made(project, system)
    assert '["1/1"]' in made(project, system, "--max-disk", "100GB")
    result = ortimg(project, "ci", system.value, "--max-disk", "5GB")
    assert result.exit_code == 2
    assert "a CUDA set is not split" in result.stderr


def test_nothing_is_published_without_a_registry(project: Path) -> None:
    result = ortimg(project, "ci", "github")
    assert "--push" not in result.stdout
    assert "docker login" not in result.stdout
    assert "names no registry" in result.stderr
    jobs = yaml.safe_load(result.stdout)["jobs"]
    assert [*jobs] == ["check", "images"]


def test_aliases_move_after_everything_else(project: Path) -> None:
    jobs = yaml.safe_load(made(project, System.GITHUB, *OPTIONS["gpu"]))["jobs"]
    assert [(name, job.get("needs")) for name, job in jobs.items()] == [
        ("check", None),
        ("images", "check"),
        ("gpu", "images"),
        ("aliases", ["gpu"]),
    ]
    assert jobs["gpu"]["runs-on"] == ["self-hosted", "gpu"]
    assert jobs["aliases"]["steps"][-1]["run"].startswith("ortimg push --aliases-only --tier run ")
    without = yaml.safe_load(made(project, System.GITHUB, *OPTIONS["published"]))["jobs"]
    assert "gpu" not in without
    assert without["aliases"]["needs"] == ["images"]
    assert "--tier load" in without["aliases"]["steps"][-1]["run"]
    lab = yaml.load(made(project, System.GITLAB, *OPTIONS["gpu"]), _Loader)
    assert lab["stages"] == ["check", "images", "gpu", "aliases"]
    assert [lab[job]["stage"] for job in ("check", "images", "gpu", "aliases")] == lab["stages"]


@pytest.mark.parametrize("name", ["published", "gpu", "hub"])
def test_only_the_branch_publishes_and_no_password_is_in_an_argument(project: Path, name: str) -> None:
    text = made(project, System.GITHUB, *OPTIONS[name])
    branch = "release/1.x" if name == "hub" else "main"
    jobs = yaml.safe_load(text)["jobs"]
    here = f"github.ref == 'refs/heads/{branch}'"
    for job in jobs.values():
        for step in job["steps"]:
            if re.search(r"docker login|--push\b|--aliases-only|--push-record", str(step.get("run"))):
                assert here in (step.get("if"), job.get("if"))
    for system in System:
        assert "--password-stdin" in made(project, system, *OPTIONS[name])
        assert not re.search(r"--password[ =]|-p \"?\$", made(project, system, *OPTIONS[name]))


def test_units_are_shared_where_the_registry_has_room_for_them(project: Path) -> None:
    assert "--units registry.example.com/team/r-units" in made(project, System.GITHUB, *OPTIONS["published"])
    assert "--units" not in made(project, System.GITHUB, *OPTIONS["hub"])  # two parts a name there, no more


@pytest.mark.parametrize(
    "option",
    [
        ("--branch", "a b"),
        ("--branch", "main]\n"),
        ("--runner", "${{ x }}"),
        ("--gpu-runner", ""),
        ("--install", "a\nb"),
        ("--also", "echo `id`"),
        ("--registry-prefix", "team"),
        ("--max-disk", "much"),
        ("--max-disk", "14GB\n"),
        ("--install", "a\u2028b"),  # YAML ends a line there
        ("--also", "a\x85b"),
        ("--also", " "),
        ("--also", "\udcff"),  # a byte of the command line that is no UTF-8
    ],
)
@every_system
def test_what_would_break_out_of_the_text_is_refused(
    project: Path, system: System, option: tuple[str, str]
) -> None:
    if option[0] == "--gpu-runner":
        option = (*option, "--registry-prefix", "ghcr.io/team")  # type: ignore[assignment]
    result = ortimg(project, "ci", system.value, *option)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")


@pytest.mark.parametrize("word", ["true", "null", "on", "1.0", "1e3", "0x10", "2026-01-01", "123"])
def test_a_word_that_yaml_reads_as_another_type_stays_a_word(project: Path, word: str) -> None:
    options = ("--branch", word, "--runner", word, "--gpu-runner", word, "--install", word, "--also", word)
    options += ("--registry-prefix", "[::1]:5000")
    data = yaml.safe_load(made(project, System.GITHUB, *options))
    assert data[True]["push"]["branches"] == [word]  # PyYAML reads `on` as true
    assert data["env"] == {"REGISTRY": "[::1]:5000", "REPOSITORY": "[::1]:5000/r"}
    jobs = data["jobs"]
    assert jobs["images"]["runs-on"] == word
    assert jobs["gpu"]["runs-on"] == ["self-hosted", word]
    assert [step["run"] for step in jobs["check"]["steps"][2:]] == [word, "ortimg render --check", word]
    assert jobs["aliases"]["steps"][-1]["run"].endswith(" --registry-prefix '[::1]:5000'")
    lab = yaml.load(made(project, System.GITLAB, *options), _Loader)
    assert lab["gpu"]["tags"] == lab[".ortimg"]["tags"] == [word]
    assert lab["variables"]["REGISTRY"] == "[::1]:5000"
    assert lab[".ortimg"]["before_script"][-1] == lab["check"]["script"][-1] == word


def test_gitlab_publishes_from_the_branch_that_was_named_else_from_its_default(project: Path) -> None:
    def branches(*more: str) -> set[str]:
        lab = yaml.load(made(project, System.GITLAB, *OPTIONS["gpu"], *more), _Loader)
        rules = [*lab["workflow"]["rules"], *lab["gpu"]["rules"], *lab["aliases"]["rules"]]
        return {rule["if"] for rule in rules if "BRANCH" in rule["if"]}

    assert branches() == {"$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH"}
    assert branches("--branch", "release/1.x") == {'$CI_COMMIT_BRANCH == "release/1.x"'}


words = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,9}", fullmatch=True)
commands = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="`"), min_size=1
)


@given(
    st.builds(
        Wish,
        system=st.sampled_from(System),
        branch=words,
        runner=st.none() | words,
        gpu_runner=st.none() | words,
        registry_prefix=st.none() | words,
        install=st.none() | commands,
        also=st.lists(commands, max_size=3).map(tuple),
    )
)
def test_the_first_line_tells_how_it_was_made(wish: Wish) -> None:
    assert wish_of(f"# Generated by `{wish.command}`: and more\nname: x\n") == wish


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name: images\n",
        "# Generated by `ortimg ci travis`\n",
        "# Generated by `ortimg ci github --what 1`\n",
    ],
)
def test_a_line_of_somebody_else_tells_nothing(text: str) -> None:
    assert wish_of(text) is None


@every_system
def test_render_keeps_it_up_to_date(project: Path, system: System) -> None:
    path = project / system.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(made(project, system, "--also", "make all"))
    assert ortimg(project, "render").exit_code == 0
    assert ortimg(project, "render", "--check").exit_code == 0
    good = path.read_text()
    assert "- make all" in good.replace("run: ", "")
    path.write_text(good.replace("ortimg render --check", "true"))
    check = ortimg(project, "render", "--check")
    assert check.exit_code != 0
    assert f"+++ b/{system.path}" in check.stdout
    (project / "images.yaml").write_text(images(include=[cell("1.16.2", "11.8")]))
    assert ortimg(project, "render").exit_code == 0
    assert path.read_text() == good.replace('["1/3", "2/3", "3/3"]', '["1/1"]')


def test_a_pipeline_that_a_person_wrote_is_left_alone(project: Path) -> None:
    path = project / ".github" / "workflows" / "mine.yml"
    path.parent.mkdir(parents=True)
    path.write_text("name: mine\n")
    assert ortimg(project, "render").exit_code == 0
    assert ortimg(project, "render", "--check").exit_code == 0
    assert path.read_text() == "name: mine\n"


def test_the_projects_own_pipeline_is_made_by_it() -> None:
    text = (ROOT / System.GITHUB.path).read_text()
    assert text.startswith(PIPELINE_MARK)
    wish = wish_of(text)
    assert wish is not None
    assert CliRunner().invoke(cli, ["-C", str(ROOT), *shlex.split(wish.command)[1:]]).stdout == text
