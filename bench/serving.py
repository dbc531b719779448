"""The network of the naive side: archives and wheels from a server on 127.0.0.1, as fast as it goes."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        return None


@contextmanager
def serving(folder: Path, files: Mapping[str, Path]) -> Iterator[str]:
    """`files`: name to the file that is handed out. Gives the address; each file lies at ADDRESS/NAME."""
    folder.mkdir(parents=True)
    for name, path in files.items():
        try:
            (folder / name).hardlink_to(path)
        except OSError:
            shutil.copyfile(path, folder / name)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder)))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        shutil.rmtree(folder, ignore_errors=True)
