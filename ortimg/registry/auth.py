"""Log-ins: docker's own configuration and helpers say who, the registry says how.

https://distribution.github.io/distribution/spec/auth/token/. What is secret stays in memory and in headers.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import requests
from requests.auth import AuthBase, HTTPBasicAuth

from ortimg.inputs.download import Unreachable, cause
from ortimg.registry.errors import Denied

_FIELD = re.compile(r'(\w+)="([^"]*)"')
_CLIENT = "ortimg"  # a token server may count by it


@dataclass(frozen=True)
class Login:
    """What docker's configuration has for a registry."""

    basic: HTTPBasicAuth | None = None
    identity_token: str | None = field(default=None, repr=False)  # of an OAuth2 log-in
    fault: str | None = None  # why a log-in that is configured could not be had

    @property
    def there(self) -> bool:
        return self.basic is not None or self.identity_token is not None


def docker_login(registry: str) -> Login:
    """The user's log-in at a registry, as the docker client keeps it: config.json and its helpers."""
    from docker import auth
    from docker.errors import DockerException, InvalidConfigFile

    try:
        with warnings.catch_warnings():  # the fault below says it
            warnings.simplefilter("ignore")
            found = auth.load_config().resolve_authconfig(registry)
        return _login_of(found) if found else Login()
    except (InvalidConfigFile, ValueError, TypeError, AttributeError):  # of another shape
        return Login(fault="docker's config.json cannot be read")
    except DockerException:  # its text may hold what a helper printed
        return Login(fault="docker's credential helper failed")


def _login_of(found: Mapping[str, Any]) -> Login:
    values = {key.lower(): value for key, value in found.items()}
    if token := values.get("identitytoken"):
        return Login(identity_token=token)
    if not values.get("username"):
        return Login()
    # RFC 7617; requests would take latin-1
    return Login(basic=HTTPBasicAuth(values["username"].encode(), (values.get("password") or "").encode()))


def anonymous(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """No log-in. Without any `auth`, requests would take one from ~/.netrc."""
    return request


class _Bearer(AuthBase):
    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


@dataclass(frozen=True)
class _Challenge:
    realm: str
    service: str | None


class Gate:
    """How to get into one registry. Threads may share one."""

    def __init__(self, registry: str, secure: bool, login: Callable[[str], Login] = docker_login) -> None:
        """`secure`: whether the registry is spoken to over TLS."""
        self._registry, self._secure = registry, secure
        self._ask_login = login
        self._login: Login | None = None
        self._challenge: _Challenge | None = None
        self._basic = False
        self._tokens: dict[frozenset[str], AuthBase] = {}
        self._lock = threading.Lock()

    def known(self, scopes: Iterable[str]) -> Callable[[requests.PreparedRequest], requests.PreparedRequest]:
        """What to send with a request that needs `scopes`, as far as is known by now."""
        if self._basic and self._login and self._login.basic:
            return self._login.basic
        return self._tokens.get(frozenset(scopes), anonymous)

    def enter(
        self,
        session: requests.Session,
        answer: requests.Response,
        scopes: Iterable[str],
        options: Mapping[str, Any],
    ) -> AuthBase:
        """How to ask again after a 401 `answer`. Raises `Denied` and `Unreachable`."""
        told = answer.headers.get("WWW-Authenticate", "")
        with self._lock:
            if self._login is None:
                self._login = self._ask_login(self._registry)
            login = self._login
            if told.lower().startswith("basic"):
                if login.basic is None:
                    raise Denied(f"{self._registry} wants a log-in{self._why(login)}", self._hint)
                self._basic = True
                return login.basic
            fields = dict(_FIELD.findall(told))
            if not told.lower().startswith("bearer") or "realm" not in fields:
                raise Denied(f"{self._registry}: a log-in of an unknown kind is wanted", self._hint)
            wanted = frozenset(scopes)
            challenge = _Challenge(fields["realm"], fields.get("service"))
            self._tokens[wanted] = self._token(session, challenge, wanted, login, options)
            return self._tokens[wanted]

    @property
    def _hint(self) -> str:
        return f"run `docker login {self._registry}`"

    def _token(
        self,
        session: requests.Session,
        challenge: _Challenge,
        scopes: frozenset[str],
        login: Login,
        options: Mapping[str, Any],
    ) -> AuthBase:
        if self._secure and not challenge.realm.startswith("https://"):
            login = Login(fault="its token server is not asked in the clear")
        service = {"service": challenge.service} if challenge.service else {}
        try:
            if login.identity_token:
                # https://distribution.github.io/distribution/spec/auth/oauth/
                data = {
                    **service,
                    "grant_type": "refresh_token",
                    "client_id": _CLIENT,
                    "scope": " ".join(sorted(scopes)),
                    "refresh_token": login.identity_token,
                }
                found = session.post(challenge.realm, data=data, auth=anonymous, **options)
            else:
                params = {"scope": sorted(scopes), **service}
                found = session.get(challenge.realm, params=params, auth=login.basic or anonymous, **options)
            body: Any = found.json() if found.ok else {}
        except (requests.RequestException, ValueError) as error:
            raise Unreachable(f"{self._registry}: no token: {cause(error)}") from error
        token = body.get("token") or body.get("access_token") if isinstance(body, dict) else None
        if isinstance(token, str):
            return _Bearer(token)
        kind = Unreachable if found.status_code >= 500 else Denied
        raise kind(f"{self._registry}: no token ({found.status_code}){self._why(login)}", self._hint)

    @staticmethod
    def _why(login: Login) -> str:
        return f": {login.fault}" if login.fault else ""
