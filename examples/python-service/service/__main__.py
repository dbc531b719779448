"""Starts the service: it answers at once, is ready when it is warm, and ends its requests first."""

from __future__ import annotations

import os
import signal
import socket
import sys

from service.health import check_health
from service.settings import Settings, read_settings

DRAIN = 20  # seconds that running requests have after SIGTERM


def main() -> None:
    """Never returns: ONNX Runtime cannot be interrupted, so a thread of its own must not keep the process."""
    signal.signal(
        signal.SIGTERM, lambda *_: os._exit(0)
    )  # as process 1 it would be ignored while this imports
    settings, check = read_settings()
    code = check_health(settings) if check else _serve(settings)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _serve(settings: Settings) -> int:
    # Only here: the health check would take a second for them.
    import asyncio
    import contextlib
    from collections.abc import Iterator

    import uvicorn

    from service.app import Service, State, make_app
    from service.model import UnusableError

    listening = asyncio.Event()

    class Server(uvicorn.Server):
        """uvicorn's own handlers close the port first; then nobody could be told that the service stops."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            listening.set()

    async def run() -> int:
        service = Service(settings)
        config = uvicorn.Config(
            make_app(service),
            host=settings.host,
            port=settings.port,
            loop="asyncio",
            http="httptools",
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        server = Server(config)
        code = 0

        async def start() -> None:
            nonlocal code
            await listening.wait()  # why it cannot listen would be lost among the words of ONNX Runtime
            try:
                await asyncio.to_thread(service.start)
            except UnusableError as error:
                print(f"error: {error}", file=sys.stderr)
                code, server.should_exit = error.code, True
                return
            except Exception as error:  # else it would say "warming up" for ever
                print(f"error: the model cannot be used: {error!r}", file=sys.stderr)
                code, server.should_exit = 1, True
                return
            if service.state is State.STARTING and service.model is not None:
                service.state = State.READY
                print(
                    f"ready on {service.model.provider}, ONNX Runtime {service.model.onnxruntime}",
                    file=sys.stderr,
                )

        async def drain() -> None:
            starting = service.state is State.STARTING
            service.state = State.STOPPING
            for _ in range(DRAIN * 20):
                if service.in_flight == 0 or starting:
                    break
                await asyncio.sleep(0.05)
            else:
                print(f"{service.in_flight} requests did not end in {DRAIN} s", file=sys.stderr)
            server.should_exit = True

        tasks = [asyncio.create_task(start())]
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: tasks.append(asyncio.create_task(drain())))
        try:
            await server.serve()
        except SystemExit:  # the port is taken; uvicorn has said so
            return 1
        return code

    # Not asyncio.run: it waits for its threads, one of which may be in a call of minutes.
    return asyncio.new_event_loop().run_until_complete(run())


if __name__ == "__main__":
    main()
