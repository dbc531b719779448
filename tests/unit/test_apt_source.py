"""The private apt sources of an engine: derived from the machine's own, which stay as they are."""

from __future__ import annotations

from pathlib import Path

from ortimg.engine.apt import derive_pins, derive_sources, machine_configuration, private_options

DEB822 = """\
# a comment
Types: deb deb-src
URIs: http://mirror.example/debian
# another
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
"""

ONE_LINE = """\
# deb http://commented.example/debian bookworm main
deb http://mirror.example/debian bookworm main non-free-firmware # words
deb-src http://mirror.example/debian bookworm main
deb [arch=amd64,i386 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://mirror.example/sec bookworm-security main
"""  # noqa: E501


def derive(name: str, text: str) -> str:
    return derive_sources({name: text}, "bookworm", "trixie")


def test_deb822() -> None:
    assert derive("debian.sources", DEB822) == (
        "Types: deb\n"
        "URIs: http://mirror.example/debian\n"
        "Suites: bookworm bookworm-updates trixie trixie-updates\n"
        "Components: main\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
        "\n"
        "Types: deb\n"
        "URIs: http://mirror.example/debian-security\n"
        "Suites: bookworm-security trixie-security\n"
        "Components: main\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    )


def test_one_line() -> None:
    assert derive("sources.list", ONE_LINE) == (
        "Types: deb\n"
        "URIs: http://mirror.example/debian\n"
        "Suites: bookworm trixie\n"
        "Components: main\n"
        "\n"
        "Types: deb\n"
        "URIs: http://mirror.example/sec\n"
        "Suites: bookworm-security trixie-security\n"
        "Components: main\n"
        "Architectures: amd64 i386\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    )


def test_a_key_written_out_stays() -> None:
    text = DEB822.replace(
        "/usr/share/keyrings/debian-archive-keyring.gpg",
        "\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n -----END PGP PUBLIC KEY BLOCK-----",
    )
    assert "Signed-By: \n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n" in derive("debian.sources", text)


def test_third_parties_are_left_out() -> None:
    others = (
        "deb [signed-by=/usr/share/keyrings/vendor.gpg] http://vendor.example/apt bookworm main\n"
        "deb [signed-by=/usr/share/keyrings/vendor.gpg] http://vendor.example/apt bookworm stable\n"
        "deb http://pg.example/apt bookworm-pgdg main\n"
    )
    text = derive_sources({"a.list": others, "debian.sources": DEB822}, "bookworm", "trixie")
    assert text == derive("debian.sources", DEB822)


def test_a_company_mirror_with_a_key_of_its_own_is_used_where_there_is_no_other() -> None:
    text = derive("a.list", "deb [signed-by=/etc/apt/company.gpg] http://apt.company.example bookworm main\n")
    assert "Suites: bookworm trixie\n" in text
    assert "Signed-By: /etc/apt/company.gpg\n" in text


def test_disabled_absent_and_repeated_sources() -> None:
    assert derive("debian.sources", DEB822.replace("Types:", "Enabled: no\nTypes:")) == ""
    assert derive("debian.sources", "") == ""
    assert derive("sources.list", "deb http://mirror.example/debian bullseye main") == ""
    assert (
        derive("sources.list", "deb http://mirror.example/sec bookworm-security main") == ""
    )  # no base suite
    assert derive("sources.list", ONE_LINE * 2) == derive("sources.list", ONE_LINE)


def test_only_docker_may_come_from_the_newer_release() -> None:
    assert derive_pins("trixie") == (
        "Package: *\nPin: release n=trixie*\nPin-Priority: -1\n"
        "\n"
        "Package: docker.io docker-cli docker-buildx\nPin: release n=trixie*\nPin-Priority: 990\n"
    )


def test_files_are_found_and_apt_is_kept_in_its_own_folder(tmp_path: Path) -> None:
    etc = tmp_path / "etc"
    (etc / "sources.list.d").mkdir(parents=True)
    (etc / "sources.list.d" / "debian.sources").write_text(DEB822)
    (etc / "sources.list.d" / "off.list.disabled").write_text(ONE_LINE)
    assert machine_configuration(etc) == {str(etc / "sources.list.d" / "debian.sources"): DEB822}
    options = private_options(tmp_path / "apt")
    assert f"Dir::State::lists={tmp_path}/apt/lists" in options
    assert (tmp_path / "apt" / "lists" / "partial").is_dir()
