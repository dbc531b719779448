"""What shall be recorded, as the command line says it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ortimg.core.model import Tier
from ortimg.core.problems import quote
from ortimg.errors import ConfigError
from ortimg.records.record import DIGEST
from ortimg.verify.wish import Provider, RunWish


class RecordWish(msgspec.Struct, frozen=True, kw_only=True):
    """Options of `ortimg verify` about records."""

    keep: bool = False  # in the project's folder
    file: Path | None = None  # a file to carry away
    digest: str | None = None  # of the image that a root was exported from
    push: bool = False  # as a referrer, too
    bring: Path | None = None  # a file that was carried here

    @property
    def wanted(self) -> bool:
        """Shall this run leave a record?"""
        return self.keep or self.push or self.file is not None

    def check(self, targets: int, roots: int, tier: Tier, wish: RunWish) -> None:
        """Raise ConfigError for what cannot go together. `roots` of the `targets` are folders."""
        if self.digest is not None and DIGEST.fullmatch(self.digest) is None:
            raise ConfigError(
                f"--digest {quote(self.digest)} is no digest",
                hint="`docker image inspect -f '{{.RepoDigests}}' IMAGE` shows it: sha256:…",
            )
        if self.bring is not None:
            if self.keep or self.file or self.digest or tier is Tier.RUN:
                raise ConfigError(
                    "--import-record runs nothing", hint="Of the others, only --push-record goes with it."
                )
            if targets != 1 or roots:
                raise ConfigError("--import-record wants one image", hint="Name the image it belongs to.")
            return
        if self.digest is not None and not (roots == targets == 1 and self.file is not None):
            raise ConfigError(
                "--digest ties the record of one unpacked root to its image",
                hint="Name one folder, with --record-file FILE.",
            )
        if not self.wanted:
            return
        if tier is not Tier.RUN or wish.provider is not Provider.CUDA:
            raise ConfigError("only verdicts of tier run are recorded", hint="Add --gpu.")
        if wish.model or wish.shapes or wish.options or wish.allow_cpu or wish.reference:
            raise ConfigError(
                "a record is made with the model of ort-verify and its own settings",
                hint="Leave out --model, --shape, --option, --allow-cpu and --reference.",
            )
        if self.file is not None and targets != 1:
            raise ConfigError("--record-file is for one target", hint="Use --record for several.")
        if (self.keep or self.push) and roots:
            raise ConfigError(
                "the record of an unpacked root is held against its image before it counts",
                hint="Write --record-file FILE --digest sha256:…; where the image is: --import-record FILE.",
            )
