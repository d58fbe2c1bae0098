"""Ask for several things at a time, and never hold more of them than that."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from queue import Empty, Queue
from types import TracebackType
from typing import Generic, TypeVar

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")
_TICK = 0.1


class Ahead(Generic[_Found]):
    """Asks for what follows before it is wanted. What turns out not to be wanted is dropped unseen."""

    def __init__(self, ask: Callable[[int], _Found], most: int) -> None:
        self._ask, self._most = ask, most
        self._pool: ThreadPoolExecutor | None = None
        self._pending: dict[int, Future[_Found]] = {}

    def __enter__(self) -> Ahead[_Found]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def take(self, number: int, following: Iterable[int]) -> _Found:
        """Return what has a number, and begin to ask for those that are likely to follow."""
        wanted = [number, *islice(following, self._most - 1)]
        if len(wanted) == 1 and number not in self._pending:
            return self._ask(number)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._most, thread_name_prefix="esker-pages")
        for other in self._pending.keys() - set(wanted):
            self._pending.pop(other).cancel()
        for each in wanted:
            if each not in self._pending:
                self._pending[each] = self._pool.submit(self._ask, each)
        return self._pending.pop(number).result()


def side_by_side(
    items: Iterator[_Item], read: Callable[[_Item], Iterator[_Found]], most: int
) -> Iterator[_Found]:
    """Yield what is read of all items, several at a time, in whatever order it comes.

    The first failure ends all. Whoever stops listening ends the reading too.
    """
    if most == 1:
        for item in items:
            yield from read(item)
        return
    found: Queue[_Found | BaseException | None] = Queue(most)
    taking, stopped = threading.Lock(), threading.Event()

    def work() -> None:
        last: BaseException | None = None
        try:
            while not stopped.is_set():
                with taking:
                    item = next(items, None)
                if item is None:
                    break
                for each in read(item):
                    if stopped.is_set():
                        break
                    found.put(each)
        except BaseException as error:  # told to whoever listens
            stopped.set()
            last = error
        found.put(last)

    workers = [threading.Thread(target=work, name="esker-children", daemon=True) for _ in range(most)]
    for worker in workers:
        worker.start()
    at_work = most
    try:
        while at_work:
            each = found.get()
            if isinstance(each, BaseException):
                raise each
            if each is None:
                at_work -= 1
            else:
                yield each
    finally:
        stopped.set()
        while any(worker.is_alive() for worker in workers):
            with suppress(Empty):  # a worker may wait for room
                found.get(timeout=_TICK)
        for worker in workers:
            worker.join()
