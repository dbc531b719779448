"""Mirrors: those of images.yaml stand in the Dockerfiles, those of the environment nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from loopback import body, release_files, serving, tgz
from test_fetch_origins import ARCHIVE_SHA, DOWN, PATH, UP, URL, fetcher, release
from wishes import cell, images, planned

from ortimg.core.lock import BaseLock, Lock
from ortimg.core.mirrors import Mirrors, Reference, mirror_problems, mirrored_image
from ortimg.core.model import Base, Origin
from ortimg.core.render import dockerfile_path
from ortimg.errors import ConfigError
from ortimg.inputs.cache import Cache
from ortimg.inputs.probe import hub_url, registry_url, release_prefix
from ortimg.inputs.result import Fetched
from ortimg.project import load_project
from ortimg.rendering import render_project

MIRRORS = Mirrors(releases="https://m.example.com/ort", registry="m.example.com/hub")


@pytest.mark.parametrize(
    ("text", "registry", "repository", "tag"),
    [
        ("debian", "docker.io", "library/debian", "latest"),
        ("debian:12-slim", "docker.io", "library/debian", "12-slim"),
        ("rockylinux/rockylinux:9-minimal", "docker.io", "rockylinux/rockylinux", "9-minimal"),
        ("docker.io/debian:12", "docker.io", "library/debian", "12"),
        ("localhost/x:1", "localhost", "x", "1"),
        ("127.0.0.1:5000/a/b", "127.0.0.1:5000", "a/b", "latest"),
        ("m.example.com/hub/library/debian:12", "m.example.com", "hub/library/debian", "12"),
    ],
)
def test_references(text: str, registry: str, repository: str, tag: str) -> None:
    expected = Reference(registry=registry, repository=repository, tag=tag)
    assert Reference.parse(text) == expected
    pinned = Reference.parse(f"{text}@sha256:{'a' * 64}")
    assert (pinned.tag, pinned.digest) == (tag, f"sha256:{'a' * 64}")


def test_images_by_the_mirrors_name() -> None:
    assert mirrored_image("debian:12-slim", None) == "debian:12-slim"
    assert mirrored_image("debian:12-slim", "m/h") == "m/h/library/debian:12-slim"
    assert mirrored_image("a/b:1@sha256:0", "m/h") == "m/h/a/b:1@sha256:0"
    assert mirrored_image("quay.io/a/b:1", "m/h") == "quay.io/a/b:1"


@pytest.mark.parametrize(
    ("registry", "url"),
    [
        ("docker.io", "https://registry-1.docker.io/v2/"),
        ("m.example.com", "https://m.example.com/v2/"),
        ("127.0.0.1:5000", "http://127.0.0.1:5000/v2/"),
        ("localhost", "http://localhost/v2/"),
    ],
)
def test_addresses_of_registries(registry: str, url: str) -> None:
    assert registry_url(registry) == url
    assert hub_url(None if registry == "docker.io" else f"{registry}/x/y") == url


@pytest.mark.parametrize(
    ("origins", "expected"),
    [
        ({"registry": "https://m.example.com"}, 'origins.registry: "https://m.example.com" is no registry: '),
        ({"registry": "dockerhub"}, 'origins.registry: "dockerhub" names no host'),
        ({"registry": "m.example.com/Hub"}, "names are lower case"),
        ({"registry": "m.example.com/hub:1"}, "leave out the tag"),
        ({"releases": "m.example.com/x"}, 'origins.releases: "m.example.com/x" is no address'),
        (
            {"releases": "https://u:p@m.example.com/x"},
            "a password in an address would be in",
        ),
        ({"releases": "https://m.example.com/x\nRUN y"}, "can stand in a Dockerfile"),
        ({"releases": "https://m.example.com/$x"}, "can stand in a Dockerfile"),
        ({"release": "https://m.example.com/x"}, 'unknown key; did you mean "releases"?'),
    ],
)
def test_bad_settings(origins: dict[str, str], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        planned(images(include=[cell("1.16.2", "11.8")], origins=origins))
    assert any(expected in line and line.startswith("images.yaml:1: ") for line in caught.value.problems)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    origins = {"releases": "https://m.example.com/ort/", "registry": "m.example.com/hub"}
    (tmp_path / "images.yaml").write_text(images(include=[cell("1.16.2", "11.8")], origins=origins))
    return tmp_path


def test_the_dockerfile_shows_the_mirrors_of_images_yaml(project: Path) -> None:
    planned_project = load_project(project)
    (row,) = planned_project.plan.cells
    text = render_project(planned_project)[dockerfile_path(row)]
    assert f"\n    https://m.example.com/ort{PATH} \\\n" in text
    assert "\nFROM m.example.com/hub/library/debian:12-slim AS base\n" in text
    assert "\nFROM m.example.com/hub/library/python:3.11-slim-bookworm AS tools\n" in text
    assert "/releases/download/" not in text


def test_the_environment_changes_no_text(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = render_project(load_project(project))
    monkeypatch.setenv("ORTIMG_RELEASE_MIRROR", "https://other.example.com")
    monkeypatch.setenv("ORTIMG_REGISTRY_MIRROR", "other.example.com/x")
    assert render_project(load_project(project)) == before


def test_archives_come_from_the_mirror_and_the_environment_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as first, serving() as second:
        for server in (first, second):
            server.answers[PATH] = body(tgz(release_files()))
        mirrors = Mirrors(releases=f"{first.url}/")
        wanted = release(url=mirrors.url(URL))
        for name, asked in (("a", first), ("b", second)):
            with fetcher(Cache(tmp_path / name), UP, mirrors=mirrors) as running:
                result = running.ort(wanted).result()
            assert isinstance(result, Fetched)
            assert (result.origin, result.identity) == (Origin.UPSTREAM, ARCHIVE_SHA)
            assert asked.asked == [PATH]
            monkeypatch.setenv("ORTIMG_RELEASE_MIRROR", second.url)
        assert first.asked == [PATH]


@pytest.mark.parametrize("url", ["http://[::1", "https://[x]/a", "https://a]b/c"])
def test_an_address_that_cannot_be_taken_apart_is_none(url: str) -> None:
    ((setting, fault),) = mirror_problems(Mirrors(releases=url))
    assert setting == "releases"
    assert fault.startswith(f'"{url}" is no address')


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("ORTIMG_RELEASE_MIRROR", text) for text in ("foo", "ftp://x", "http://", "http://[::1", " ")),
        ("ORTIMG_RELEASE_MIRROR", "https://127.0.0.1:99999/x"),
        *(
            ("ORTIMG_REGISTRY_MIRROR", text)
            for text in ("foo", "http://127.0.0.1:1/", "h.example.com/A", " ")
        ),
    ],
)
def test_a_wrong_setting_is_told_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=f"^{name}: "):
        fetcher(Cache(tmp_path), UP)


@pytest.mark.parametrize("value", ["http://127.0.0.1:1", "https://u:p@h.example.com/a?b="])
def test_a_setting_may_be_any_address(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ORTIMG_RELEASE_MIRROR", value)
    assert release_prefix() == value


def test_the_mirrors_are_what_is_probed(tmp_path: Path) -> None:
    with serving() as server:
        address = server.url.removeprefix("http://")
        mirrors = Mirrors(releases=server.url, registry=f"{address}/hub")
        with fetcher(Cache(tmp_path), None, mirrors=mirrors) as running:
            assert running.upstream == UP
        assert sorted(server.asked) == ["/", "/v2/"]


def test_bases_by_the_environments_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def base(image: str, mirrors: Mirrors, digest: str | None = None) -> Fetched:
        lock = Lock(bases={"b": BaseLock(image=image, digest=digest)})
        row = Base(name="b", image=image, title="B", glibc="2.36", glibcxx=None)
        with fetcher(Cache(tmp_path), UP, lock, mirrors=mirrors) as running:
            result = running.base(row).result()
        assert isinstance(result, Fetched)
        assert result.identity == image, "what it is called in the Dockerfile"
        return result

    assert base("debian:12-slim", Mirrors()).image == "debian:12-slim"
    mirrored = MIRRORS.image("debian:12-slim")
    assert base(mirrored, MIRRORS).image == mirrored
    monkeypatch.setenv("ORTIMG_REGISTRY_MIRROR", "ci.example.com/x/")
    assert base("debian:12-slim", Mirrors()).image == "ci.example.com/x/library/debian:12-slim"
    assert base(mirrored, MIRRORS).image == "ci.example.com/x/library/debian:12-slim"
    pinned = base(mirrored, MIRRORS, f"sha256:{'a' * 64}")
    assert pinned.image == f"ci.example.com/x/library/debian:12-slim@sha256:{'a' * 64}"
    assert base("quay.io/a/b:1", Mirrors()).image == "quay.io/a/b:1"


@pytest.mark.parametrize(("image", "there"), [("quay.io/a/b:1", True), ("debian:12-slim", False)])
def test_another_registry_is_not_judged_by_docker_hub(tmp_path: Path, image: str, there: bool) -> None:
    row = Base(name="b", image=image, title="B", glibc="2.36", glibcxx=None)
    with fetcher(Cache(tmp_path), DOWN) as running:
        assert isinstance(running.base(row).result(), Fetched) is there
