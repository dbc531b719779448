"""Docker from Debian's next release, without a change to the machine's own apt configuration.

Debian 12 ships Docker 20.10 and no buildx; Debian 13's docker.io and docker-buildx ask for nothing newer than
what Debian 12 has (libc6 >= 2.34, containerd >= 1.4, runc >= 1.0). So apt gets sources, lists and pins of
its own for one call: three packages come from Debian 13, all else stays Debian 12's (apt_preferences(5)).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

DOCKER_PACKAGES = ("docker.io", "docker-cli", "docker-buildx")

# Options of a one-line entry, and the deb822 field of each (sources.list(5)).
_OPTION_FIELDS = {
    "arch": "Architectures",
    "signed-by": "Signed-By",
    "trusted": "Trusted",
    "check-valid-until": "Check-Valid-Until",
    "check-date": "Check-Date",
}


@dataclass(frozen=True)
class AptSource:
    """One package source: where, which suites, and the fields that say how it is trusted."""

    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    fields: tuple[tuple[str, str], ...] = ()

    @property
    def own_keyring(self) -> bool:
        """Whether the distribution's own keyring signs it: third parties bring a keyring of theirs."""
        signed = dict(self.fields).get("Signed-By", "")
        return not signed or "debian-archive" in signed

    def stanza(self) -> str:
        """The source in deb822 form."""
        lines = [
            "Types: deb",
            f"URIs: {' '.join(self.uris)}",
            f"Suites: {' '.join(self.suites)}",
            f"Components: {' '.join(self.components)}",
        ]
        lines += [f"{name}: {value}" for name, value in self.fields]
        return "\n".join(lines) + "\n"


def derive_sources(configuration: Mapping[str, str], codename: str, newer: str) -> str:
    """The sources of `codename` and of `newer`, from the machine's own apt configuration.

    `configuration` maps each file name to its text; names that end in `.sources` are deb822. Mirror, keyring
    and options are kept. The result is deb822 text, empty where no source for `codename` is configured.
    """
    found: list[AptSource] = []
    for name, text in sorted(configuration.items()):
        found += _deb822(text) if name.endswith(".sources") else _one_line(text)
    renamed = {
        codename: newer,
        f"{codename}-updates": f"{newer}-updates",
        f"{codename}-security": f"{newer}-security",
    }
    matching = [s for s in found if "main" in s.components and any(suite in renamed for suite in s.suites)]
    trusted = [s for s in matching if s.own_keyring] or matching
    stanzas = []
    for source in trusted:
        own = [suite for suite in source.suites if suite in renamed]
        suites = (*own, *(renamed[suite] for suite in own))
        stanzas.append(AptSource(source.uris, suites, ("main",), source.fields).stanza())
    return "\n".join(dict.fromkeys(stanzas)) if any(codename in s.suites for s in trusted) else ""


def one_suite(configuration: Mapping[str, str], codename: str, suite: str) -> str:
    """The mirrors of `codename` as sources of `suite` alone; deb822 text, empty where there is none."""
    found: list[AptSource] = []
    for name, text in sorted(configuration.items()):
        found += _deb822(text) if name.endswith(".sources") else _one_line(text)
    stanzas = [
        AptSource(source.uris, (suite,), ("main",), source.fields).stanza()
        for source in found
        if source.own_keyring and codename in source.suites and "main" in source.components
    ]
    return "\n".join(dict.fromkeys(stanzas))


def derive_pins(newer: str, packages: Iterable[str] = DOCKER_PACKAGES) -> str:
    """apt preferences: nothing comes from `newer` but `packages`."""
    release = f"Pin: release n={newer}*"
    pins = {"*": -1, " ".join(packages): 990}
    return "\n".join(f"Package: {names}\n{release}\nPin-Priority: {pin}\n" for names, pin in pins.items())


def machine_configuration(etc: Path = Path("/etc/apt")) -> dict[str, str]:
    """The texts of the machine's apt source files, by path."""
    files = [
        etc / "sources.list",
        *(etc / "sources.list.d").glob("*.list"),
        *(etc / "sources.list.d").glob("*.sources"),
    ]
    return {str(f): f.read_text("utf-8", "replace") for f in files if f.is_file()}


def private_options(folder: Path) -> tuple[str, ...]:
    """Makes `folder` an apt world of its own, and gives the options with which apt uses it."""
    for part in ("sources", "lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    settings = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": str(folder / "sources"),
        "Dir::Etc::preferences": str(folder / "preferences"),
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::State::lists": str(folder / "lists"),
        "Dir::Cache": str(folder / "cache"),
        "Acquire::Languages": "none",
    }
    return tuple(word for key, value in settings.items() for word in ("-o", f"{key}={value}"))


def _deb822(text: str) -> list[AptSource]:
    sources = []
    for paragraph in re.split(r"\n[ \t]*\n", _without_comments(text)):
        fields: dict[str, str] = {}
        last = ""
        for line in paragraph.splitlines():
            if line[:1] in " \t" and last:
                fields[last] += "\n" + line  # a continuation, such as a key written out in Signed-By
            elif ":" in line:
                last, _, value = line.partition(":")
                last = last.strip().lower()
                fields[last] = value.strip()
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").lower() in (
            "no",
            "false",
        ):
            continue
        kept = tuple((f, fields[f.lower()]) for f in _OPTION_FIELDS.values() if f.lower() in fields)
        words = {key: tuple(fields.get(key, "").split()) for key in ("uris", "suites", "components")}
        sources.append(AptSource(words["uris"], words["suites"], words["components"], kept))
    return sources


def _one_line(text: str) -> list[AptSource]:
    sources = []
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[(?P<options>[^]]*)\]\s*)?(?P<rest>\S.*)", line.partition("#")[0])
        if not match:
            continue
        words = match["rest"].split()
        if len(words) < 3:
            continue
        options = dict(o.partition("=")[::2] for o in shlex.split(match["options"] or ""))
        fields = tuple((f, options[o].replace(",", " ")) for o, f in _OPTION_FIELDS.items() if o in options)
        sources.append(AptSource((words[0],), (words[1],), tuple(words[2:]), fields))
    return sources


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))
