"""Whose certificates downloads trust: behind a company's proxy, those of its own authority."""

from __future__ import annotations

import os
from pathlib import Path

from ortimg.core.problems import quote
from ortimg.errors import ConfigError

# The first two are those of requests, and so of pip, the third is OpenSSL's:
# https://requests.readthedocs.io/en/latest/user/advanced/#ssl-cert-verification
# https://docs.openssl.org/master/man3/SSL_CTX_load_verify_locations/
VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


def authorities() -> str | bool:
    """File (or folder) of certificates that the environment names; True: those that come with requests.

    Raises ConfigError where the environment names what is not there.
    """
    for name in VARIABLES:
        if path := os.environ.get(name):
            if not Path(path).exists():
                raise ConfigError(
                    f"{name}: {quote(path)} is not there",
                    hint="Name a PEM file with the authorities' certificates, or unset it.",
                )
            return path
    return True
