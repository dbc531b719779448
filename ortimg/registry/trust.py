"""Which registries are spoken to without TLS, and whose certificates hold, by docker's own conventions.

https://docs.docker.com/engine/security/certificates/
"""

from __future__ import annotations

import os
import re
import ssl
from pathlib import Path

from ortimg.errors import ConfigError

LOOPBACK = re.compile(r"(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?")
PLAIN_HTTP = "ORTIMG_PLAIN_HTTP"


def certificate_folders(registry: str) -> list[Path]:
    """Folders with certificates for `registry` (host, host:port): the rootless engine's, the system's."""
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    roots = (Path(home) / "docker", Path("/etc/docker"))
    return [found for root in roots if (found := root / "certs.d" / registry).is_dir()]


def is_plain(registry: str) -> bool:
    """Whether a registry is spoken to over plain HTTP: one on this machine without certificates of its own,
    and those that ORTIMG_PLAIN_HTTP names (host:port, separated by commas)."""
    told = {name.strip() for name in os.environ.get(PLAIN_HTTP, "").split(",")}
    if registry in told:
        return True
    return bool(LOOPBACK.fullmatch(registry)) and not certificate_folders(registry)


def tls_context(registry: str) -> ssl.SSLContext:
    """TLS as docker does it: the system's authorities, and those of the registry's own folder.

    `*.crt` are authorities, a `*.cert` with its `*.key` is the client's own. Raises ConfigError for a file
    that cannot be read.
    """
    from urllib3.util.ssl_ import create_urllib3_context

    context = create_urllib3_context()
    context.load_default_certs()
    for folder in certificate_folders(registry):
        for path in sorted(folder.iterdir()):
            try:
                if path.suffix == ".crt":
                    context.load_verify_locations(cafile=str(path))
                elif path.suffix == ".cert":
                    context.load_cert_chain(str(path), str(path.with_suffix(".key")))
            except (OSError, ssl.SSLError) as error:
                raise ConfigError(
                    f"{path}: {error.strerror or error}",
                    hint="A folder of certs.d holds PEM files: authorities as *.crt, *.cert with its *.key.",
                ) from error
    return context
