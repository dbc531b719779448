"""A real HTTP server on 127.0.0.1 whose answers a test decides, and small files shaped like real ones."""

from __future__ import annotations

import gzip
import io
import ssl
import struct
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Calls the answer that is registered for the path; records what was asked."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        answer = self.server.answers.get(self.path)
        if answer is None:
            status(404)(self)
        else:
            answer(self)
        self.close_connection = True

    do_HEAD = do_POST = do_CONNECT = do_GET  # noqa: N815 - the names that http.server looks for

    def log_message(self, *_args: object) -> None:
        return None

    def head(self, code: int, length: int | None, **headers: str) -> None:
        self.send_response(code)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Connection", "close")
        self.end_headers()


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []

        self.scheme = "http"

    def speak_tls(self, certificate: Path, key: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.scheme = "https"

    def handle_error(self, request: object, client_address: object) -> None:
        if self.scheme == "http":  # of TLS: a client that refuses the certificate, as it should
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}"


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def body(data: bytes, *, length: int | None = None, **headers: str) -> Answer:
    """200 with `data`; `length` lies about its size."""

    def answer(handler: Handler) -> None:
        handler.head(200, len(data) if length is None else length, **headers)
        handler.wfile.write(data)

    return answer


def status(code: int, **headers: str) -> Answer:
    return lambda handler: handler.head(code, 0, **headers)


def in_turn(*answers: Answer) -> Answer:
    """Each answer once, the last one for ever."""
    left = list(answers)

    def answer(handler: Handler) -> None:
        (left.pop(0) if len(left) > 1 else left[0])(handler)

    return answer


def zeros(size: int) -> Answer:
    def answer(handler: Handler) -> None:
        handler.head(200, size)
        piece = bytes(1 << 20)
        for _ in range(size >> 20):
            handler.wfile.write(piece)

    return answer


def drip(length: int, seconds: float) -> Answer:
    """A byte now and then: never silent for long, never done."""

    def answer(handler: Handler) -> None:
        handler.head(200, length)
        for _ in range(length):
            handler.wfile.write(b"x")
            handler.wfile.flush()
            time.sleep(seconds)

    return answer


def shared_library(*needed: str) -> bytes:
    """An ELF64 shared object that holds nothing but its NEEDED entries."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in needed)
    entries, offset = b"", 1
    for name in needed:
        entries += struct.pack("<QQ", 1, offset)  # DT_NEEDED
        offset += len(name) + 1
    entries += struct.pack("<QQ", 0, 0)
    names = b"\0.dynstr\0.dynamic\0.shstrtab\0"
    at_strings = 64
    at_dynamic = at_strings + len(strings)
    at_names = at_dynamic + len(entries)
    at_sections = at_names + len(names)

    def section(name: int, kind: int, at: int, size: int, link: int = 0, entry: int = 0) -> bytes:
        return struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, at, size, link, 0, 1, entry)

    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, at_sections, 0, 64, 56, 0, 64, 4, 3)
    sections = section(0, 0, 0, 0) + section(1, 3, at_strings, len(strings))
    sections += section(9, 6, at_dynamic, len(entries), 1, 16) + section(18, 3, at_names, len(names))
    return header + strings + entries + names + sections


NEEDED_11 = ("libcublasLt.so.11", "libcublas.so.11", "libcudnn.so.8", "libcurand.so.10", "libcudart.so.11.0")
COMMIT = "0c5b95fc86750526d09ee9e669a98506116c6bde"


def release_files(version: str = "1.16.2", needed: tuple[str, ...] = NEEDED_11) -> dict[str, bytes]:
    """Members of a small archive that has all a GPU release must have."""
    return {
        "VERSION_NUMBER": f"{version}\n".encode(),
        "GIT_COMMIT_ID": f"{COMMIT}\n".encode(),
        "LICENSE": b"MIT\n",
        f"lib/libonnxruntime.so.{version}": shared_library("libc.so.6"),
        "lib/libonnxruntime_providers_cuda.so": shared_library(*needed, "libc.so.6"),
        "lib/libonnxruntime_providers_shared.so": shared_library("libc.so.6"),
    }


def tgz(files: dict[str, bytes], top: str = "onnxruntime-linux-x64-gpu-1.16.2") -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(f"{top}/{name}" if top else name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), mtime=0)


def jar(version: str = "1.16.2", needed: tuple[str, ...] = NEEDED_11, **extra: bytes) -> bytes:
    """A small Maven jar: Windows files are in it too."""
    libraries = "ai/onnxruntime/native/linux-x64"
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr(f"{libraries}/libonnxruntime.so", shared_library("libc.so.6", version))
        package.writestr(f"{libraries}/libonnxruntime4j_jni.so", b"not taken")
        package.writestr(f"{libraries}/libonnxruntime_providers_cuda.so", shared_library(*needed))
        package.writestr(f"{libraries}/libonnxruntime_providers_shared.so", shared_library("libc.so.6"))
        package.writestr("ai/onnxruntime/native/win-x64/onnxruntime.dll", b"not taken")
        package.writestr("GIT_COMMIT_ID", f"{COMMIT}\r\n")
        package.writestr("ThirdPartyNotices.txt", b"notices\n")
        for name, data in extra.items():
            package.writestr(name, data)
    return raw.getvalue()
