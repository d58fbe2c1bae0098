"""A TCP proxy before any server: on demand it loses the answer to a request, or all lines are dead."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_CHUNK = 1 << 16


@dataclass
class Cutting:
    """A running proxy."""

    port: int
    upstream: tuple[str, int]
    is_down: bool = False
    """Nothing goes through."""
    _needle: bytes | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def lose_answer_to(self, needle: bytes) -> None:
        """Take the next request that holds these bytes through, and cut the line before its answer."""
        self._needle = needle

    @property
    def is_waiting(self) -> bool:
        """No request has been met yet."""
        return self._needle is not None

    def meets(self, request: bytes) -> bool:
        """Tell whether a request is the one, once."""
        with self._lock:
            if self._needle is None or self._needle not in request:
                return False
            self._needle = None
            return True


@contextmanager
def running_cutting(host: str, port: int) -> Iterator[Cutting]:
    """Start a proxy before a server."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        proxy = Cutting(server.getsockname()[1], (host, port))
        threading.Thread(target=_accept, args=(server, proxy), daemon=True).start()
        yield proxy


def _accept(server: socket.socket, proxy: Cutting) -> None:
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return  # the test is over
        if proxy.is_down:
            client.close()
            continue
        threading.Thread(target=_serve, args=(client, proxy), daemon=True).start()


def _serve(client: socket.socket, proxy: Cutting) -> None:
    with client, socket.create_connection(proxy.upstream) as upstream:
        cut = threading.Event()
        back = threading.Thread(target=_answers, args=(upstream, client, cut), daemon=True)
        back.start()
        with suppress(OSError):
            while (request := client.recv(_CHUNK)) and not proxy.is_down:
                if proxy.meets(request):
                    cut.set()
                upstream.sendall(request)
        with suppress(OSError):
            upstream.shutdown(socket.SHUT_WR)
        back.join()


def _answers(upstream: socket.socket, client: socket.socket, cut: threading.Event) -> None:
    with suppress(OSError):
        while answer := upstream.recv(_CHUNK):
            if cut.is_set():
                break  # the server has done it, and nobody is told
            client.sendall(answer)
    for each in (client, upstream):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
