"""Send documents to a search server, many in one request, and see to each of them.

Each document has its version. The server keeps the highest, so that whatever arrives late or twice changes
nothing. `external_gte`: the same version again replaces the document by itself, or by what a corrected
transform makes of the same row.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from esker.deliver.targets.content import NotJson, as_json, described
from esker.deliver.targets.patience import Patience
from esker.deliver.targets.target import Message, Refused, Sender
from esker.deliver.targets.web import Web, told
from esker.engine.web import PASSING
from esker.errors import IndexGone, TargetRefused, TargetUnavailable
from esker.project.secrets import redact

_MOST_BYTES = 5_000_000
_MOST_DOCUMENTS = 5_000
_LONGEST_ID = 512
"""Bytes. With a longer one, servers refuse the whole request."""
_SHOWN = 1_000
_ANSWER = "filter_path=errors,items.*.status,items.*.error"


@dataclass(frozen=True)
class _Line:
    """A message as it is sent."""

    message: Message
    content: bytes


@dataclass(frozen=True)
class _Outcome:
    """What became of the lines of a request."""

    refused: list[Refused]
    again: list[_Line]
    why: str
    """What the server says of those that may arrive later."""


class BulkSender(Sender):
    """Writes to one index."""

    def __init__(
        self, web: Web, target: str, index: str, retries: int, *, is_alias: bool, packed: bool
    ) -> None:
        self._web, self._target, self._index, self._retries = web, target, index, retries
        # Without this, an alias that somebody removes would become an index of the same name.
        self._path = f"/{index}/_bulk?{_ANSWER}{'&require_alias=true' if is_alias else ''}"
        self._headers = {"Content-Type": "application/x-ndjson"}
        self._packed = packed
        if packed:
            self._headers["Content-Encoding"] = "gzip"

    def send(self, messages: Sequence[Message]) -> list[Refused]:
        lines: list[_Line] = []
        refused: list[Refused] = []
        for message in messages:
            try:
                lines.append(_line(message))
            except NotJson as error:
                refused.append(Refused(message, str(error)))
        for lot in _lots(lines):
            refused += self._deliver(lot)
        return refused

    def close(self) -> None:
        self._web.close()

    def _deliver(self, lot: list[_Line]) -> list[Refused]:
        """Send until each of a request's documents has arrived or is refused."""
        refused: list[Refused] = []
        patience = Patience(self._retries)
        while lot:
            content = b"".join(line.content for line in lot)
            answer = self._web.ask(
                "POST", self._path, gzip.compress(content, 1) if self._packed else content, self._headers
            )
            if answer.status_code == 413:
                return refused + self._in_halves(lot, told(answer))
            if not answer.is_success:
                raise TargetRefused(self._target, told(answer))
            outcome = self._outcome(lot, _items(answer.content, len(lot)))
            refused += outcome.refused
            if len(outcome.again) < len(lot):
                patience.renew()
            lot = outcome.again
            if lot and not patience.wait():
                raise TargetUnavailable(self._target, outcome.why, patience.tries)
        return refused

    def _in_halves(self, lot: list[_Line], why: str) -> list[Refused]:
        if len(lot) == 1:
            return [Refused(lot[0].message, why)]
        middle = len(lot) // 2
        return self._deliver(lot[:middle]) + self._deliver(lot[middle:])

    def _outcome(self, lot: list[_Line], items: list[dict[str, Any]] | None) -> _Outcome:
        if items is None:
            return _Outcome([], lot, "Its answer is not that of a search server.")
        refused, again, why = [], [], ""
        for line, item in zip(lot, items, strict=True):
            status, error = item["status"], item.get("error")
            # 409: a newer version is there. 404: what is deleted was not there. Both have arrived.
            if error is None or status == 409:
                continue
            words = _words(error)
            if status in PASSING:
                again.append(line)
                why = words
            elif status == 404:
                raise IndexGone(self._target, words)
            elif status in (401, 403):
                # No fault of the document's: the next one would fare the same.
                remedy = (
                    f'See whether the credentials may write to "{self._index}", and whether it is closed.'
                )
                raise TargetRefused(self._target, words, remedy)
            else:
                refused.append(Refused(line.message, words))
        return _Outcome(refused, again, why)


def _line(message: Message) -> _Line:
    size = len(message.id.encode("utf-8", "replace"))
    if not 0 < size <= _LONGEST_ID:
        raise NotJson(f"its id has {size} bytes; a search server takes 1 to {_LONGEST_ID}")
    facts = {"_id": message.id, "version": message.version, "version_type": "external_gte"}
    if message.op == "delete":
        return _Line(message, as_json({"delete": facts}) + b"\n")
    body = described(message) if message.body is None else message.body
    return _Line(message, as_json({"index": facts}) + b"\n" + as_json(body) + b"\n")


def _lots(lines: list[_Line]) -> Iterator[list[_Line]]:
    """Yield what fits into one request: a document that does not is alone in its own."""
    lot: list[_Line] = []
    size = 0
    for line in lines:
        if lot and (size + len(line.content) > _MOST_BYTES or len(lot) == _MOST_DOCUMENTS):
            yield lot
            lot, size = [], 0
        lot.append(line)
        size += len(line.content)
    if lot:
        yield lot


def _items(content: bytes, count: int) -> list[dict[str, Any]] | None:
    """Return what is said of each document; None for an answer that says nothing of them."""
    try:
        items = [next(iter(item.values())) for item in json.loads(content)["items"]]
        is_whole = len(items) == count and all(isinstance(item["status"], int) for item in items)
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return None
    return items if is_whole else None


def _words(error: Any) -> str:
    if not isinstance(error, dict):
        return redact(str(error))[:_SHOWN]
    words = f"{error.get('type')}: {error.get('reason')}"
    cause = error.get("caused_by")
    if isinstance(cause, dict) and cause.get("reason"):
        words += f" ({cause['reason']})"
    return redact(words)[:_SHOWN]
