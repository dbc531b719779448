"""`--check-health`: asks the service in the same container. No curl and no shell are needed."""

from __future__ import annotations

import http.client
import json
import sys
import urllib.error
import urllib.request

from service.settings import Settings

LIMIT = 3  # seconds


def check_health(settings: Settings) -> int:
    """0: ready, on the provider that was asked for. 1: not, with a line on stderr that says what is."""
    host = "127.0.0.1" if settings.host == "0.0.0.0" else settings.host
    try:
        with urllib.request.urlopen(f"http://{host}:{settings.port}/readyz", timeout=LIMIT) as answer:
            said = json.load(answer)
    except urllib.error.HTTPError as error:
        print(f"not ready: {error.read().decode(errors='replace').strip()}", file=sys.stderr)
        return 1
    except (OSError, ValueError, http.client.HTTPException) as error:
        print(f"no answer: {error}", file=sys.stderr)
        return 1
    wanted = settings.provider.onnxruntime_name
    if said.get("provider") != wanted:
        print(f"it runs on {said.get('provider')}, wanted is {wanted}", file=sys.stderr)
        return 1
    return 0
