"""Send rows to a target: make a message of each, hand them over in lots, and say what became of them.

It runs in this process for few rows, and in Spark's tasks for many. Whatever it does may be done twice.
"""

from __future__ import annotations

import base64
import json
import pickle
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Self

import pyarrow as pa

from esker.deliver.json_values import as_json_object, id_of
from esker.deliver.pace import paced
from esker.deliver.targets.target import Message, Sender, Target
from esker.deliver.transform import Body, Failed, Transform, rows_as_they_are, rows_or_failed, shown
from esker.engine.tried_columns import FAILED, GIVEN
from esker.errors import ConsumerFenced, EskerError
from esker.ledger.change_columns import CHANGESET, OP
from esker.ledger.dead_letter_events import ARROW, DEAD, RESOLVED, DeadLetter
from esker.ledger.process import is_gone
from esker.project.reserved import is_own

ID = "_esker_id"
"""How columns begin that identify a row, whatever the transform makes of it: `_esker_id0`…"""
UNWANTED = "unwanted"
"""In the place of an operation: the transform wants no message of the row."""
COUNTED, STOPPED = "counted", "stopped"
"""In the place of a letter's status: counts, and an error that ended the sending."""


@dataclass(frozen=True)
class Counts:
    """What became of rows."""

    rows: int = 0
    sent: int = 0
    """Messages with a body that have arrived."""
    deleted: int = 0
    """Deletes that have arrived."""
    unwanted: int = 0
    """Rows that the transform wants no message of; where they might be in the target, they are deleted."""
    dead: int = 0
    """Rows that failed, and were not known to."""
    known: int = 0
    """Rows that failed as they did before."""
    resolved: int = 0
    """Rows that failed before, and have arrived now."""

    def __add__(self, other: Counts) -> Self:
        return type(self)(**{name: value + getattr(other, name) for name, value in asdict(self).items()})


OUTCOME = pa.schema([*ARROW, *(pa.field(name, pa.int64()) for name in asdict(Counts()))])
"""What comes back of rows: dead letters, and counts."""


@dataclass
class _Tally:
    """What became of the rows of one batch."""

    counts: Counter[str] = field(default_factory=Counter)
    events: list[dict[str, Any]] = field(default_factory=list)

    def outcome(self) -> pa.RecordBatch:
        told = [*self.events, {"status": COUNTED, **asdict(Counts(**self.counts))}]
        return pa.RecordBatch.from_pylist(told, OUTCOME)


class _Orphaned(Exception):
    """Nobody is left who would write down that a lot has arrived."""

    def __init__(self, driver: str) -> None:
        super().__init__(f"the process that delivers has ended: {driver}")


def unfenced() -> None:
    """Let everything be sent."""


@dataclass(frozen=True)
class Sending:
    """How rows are sent. Can be pickled, unless it is fenced by more than the end of a process."""

    target: Target
    table: str
    ids: tuple[str, ...]
    """The columns that identify a row."""
    transform: Transform | None
    """None: a row is its message's body."""
    known: Mapping[str, DeadLetter]
    """Rows that failed before, by id."""
    event: int
    """The number of dead letters that come of this."""
    moment: datetime
    driver: str
    """The process that delivers. Spark's tasks may outlive it, while somebody else delivers already."""
    lot: int
    """Messages that are handed over together."""
    notify: bool = False
    beside: int = 0
    """What the changesets of other tables add to versions."""
    fills: bool = False
    """The target is empty: what is not wanted there need not be deleted."""
    retries: bool = False
    """Rows that failed before are to be sent, also where later changes wait behind them."""
    resolves: bool = True
    """Whoever arrives is done with. Not while another index is filled: there it may be dead all the same."""
    renews: bool = False
    """Letters that are known are written once more: those of before are done with."""
    rate: float | None = None
    """Most rows per second."""
    fence: Callable[[], None] = unfenced
    """Raises ConsumerFenced when somebody else may be sending by now."""

    def send(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Send rows, and yield what became of them. An error of the target's comes as the last thing."""
        failed: dict[str, DeadLetter] = {}
        with ExitStack() as stack:
            sender: Sender | None = None
            for batch in batches if self.rate is None else paced(batches, self.rate):
                if not len(batch):
                    continue
                try:
                    if sender is None:
                        sender = stack.enter_context(self.target.open())
                    yield self._sent(pa.Table.from_batches([batch]), sender, failed)
                except ConsumerFenced:
                    raise  # whoever sends now finds out itself what is refused
                except EskerError as error:
                    # Through Spark it would come as a text.
                    yield _stopped(error)
                    return

    def _sent(self, rows: pa.Table, sender: Sender, failed: dict[str, DeadLetter]) -> pa.RecordBatch:
        """Send a batch. `failed` are ids whose later changes have to wait, each behind a letter."""
        tally = _Tally()
        tally.counts["rows"] = len(rows)
        lot: list[Message] = []
        inside: set[str] = set()
        is_ordered = not self.target.keeps_versions
        for message, problem in self._messages(rows, tally):
            if is_ordered and (failed or self.known) and self._waits(message, failed):
                self._let_wait(tally, message, failed)
                continue
            if problem is not None:
                self._bury(tally, message, "transform", problem.error, failed)
                continue
            if is_ordered:
                if message.id in inside:
                    # If the earlier one is refused, the later one must wait.
                    self._hand_over(lot, sender, tally, failed)
                    lot, inside = [], set()
                    if self._waits(message, failed):
                        self._let_wait(tally, message, failed)
                        continue
                inside.add(message.id)
            lot.append(message)
            if len(lot) >= self.lot:
                self._hand_over(lot, sender, tally, failed)
                lot, inside = [], set()
        self._hand_over(lot, sender, tally, failed)
        return tally.outcome()

    def _waits(self, message: Message, failed: Mapping[str, DeadLetter]) -> bool:
        """Tell whether a message must not come before an earlier one of its row; only where order counts."""
        return message.id in failed or (message.id in self.known and not self.retries)

    def _let_wait(self, tally: _Tally, message: Message, failed: Mapping[str, DeadLetter]) -> None:
        """Let the letter of a row have its newest change. Why the row is dead stays what it was."""
        letter = failed.get(message.id) or self.known[message.id]
        # What waits fails for no reason of its own.
        tally.counts["known"] += 1
        # After a stop, changes come again that the letter is of, or that waited before it.
        if message.changeset > letter.changeset:
            tally.events.append(self._event(message, letter))

    def _hand_over(
        self, lot: Sequence[Message], sender: Sender, tally: _Tally, failed: dict[str, DeadLetter]
    ) -> None:
        if not lot:
            return
        if is_gone(self.driver):
            raise _Orphaned(self.driver)
        self.fence()
        refused = {each.message.id: each for each in sender.send(lot)}
        if not refused and not self.known:
            deleted = sum(message.op == "delete" for message in lot)
            tally.counts.update(deleted=deleted, sent=len(lot) - deleted)
            return
        for message in lot:
            if (refusal := refused.get(message.id)) is not None:
                self._bury(tally, message, "target", refusal.reason, failed)
                continue
            tally.counts["deleted" if message.op == "delete" else "sent"] += 1
            if message.id in self.known and self.resolves:
                tally.counts["resolved"] += 1
                tally.events.append(
                    {"event": self.event, "id": message.id, "status": RESOLVED, "seen_at": self.moment}
                )

    def _messages(self, rows: pa.Table, tally: _Tally) -> Iterator[tuple[Message, Failed | None]]:
        """Yield a message for each row, and what is wrong with it; none for those that nobody wants."""
        changesets, ops = rows.column(CHANGESET).to_pylist(), rows.column(OP).to_pylist()
        beside = rows.select([f"{ID}{place}" for place in range(len(self.ids))])
        found = rows_or_failed(beside.rename_columns(self.ids))
        unread = {place: each for place, each in enumerate(found) if isinstance(each, Failed)}
        keys: list[Mapping[str, Any]] = [
            each.given or {} if isinstance(each, Failed) else each for each in found
        ]
        ids = [id_of(*key.values()) for key in keys]
        is_null = [None in key.values() for key in keys]
        if not all(map(_is_plain, beside.schema.types)):
            keys = [as_json_object(key) for key in keys]
        content = rows.select([name for name in rows.column_names if not is_own(name)])
        bodies = self._bodies(rows, content, ops, unread)
        for place, (key, op, body, changeset) in enumerate(zip(keys, ops, bodies, changesets, strict=True)):
            is_wanted = op != UNWANTED and (body is not None or op == "delete" or self.notify)
            if not is_wanted and place not in unread:
                tally.counts["unwanted"] += 1
                if self.fills:
                    continue
                op, body = "delete", None  # noqa: PLW2901
            problem = body if isinstance(body, Failed) else None
            if is_null[place]:
                problem = Failed("its id is null: no message could be told from another one's")
            if place in unread:
                problem = Failed(f"its id: {unread[place].error}")
            told: Any = body
            if problem is not None:
                told = problem.given or shown(content.slice(place, 1))
            # By place: naming them takes as long again.
            message = Message(ids[place], changeset + self.beside, op, self.table, changeset, key, told)
            yield message, problem

    def _bodies(
        self, rows: pa.Table, content: pa.Table, ops: Sequence[str], unread: Container[int]
    ) -> list[Body]:
        """Return what is made of each row: nothing of those that are gone, or at places `unread`."""
        gone = [op in ("delete", UNWANTED) or place in unread for place, op in enumerate(ops)]
        if self.notify or all(gone):
            return [None] * len(ops)
        live = content.filter(pa.array([not is_gone for is_gone in gone])) if any(gone) else content
        made = iter(self.transform.bodies(live) if self.transform is not None else rows_as_they_are(live))
        bodies = [None if is_gone else next(made) for is_gone in gone]
        if FAILED in rows.column_names:
            told = zip(rows.column(FAILED).to_pylist(), rows.column(GIVEN).to_pylist(), strict=True)
            for place, (error, given) in enumerate(told):
                if error is not None:
                    bodies[place] = Failed(error, json.loads(given))
        return bodies

    def _bury(
        self, tally: _Tally, message: Message, stage: str, error: str, failed: dict[str, DeadLetter]
    ) -> None:
        # As it is written: it is compared with what was written before.
        error = _in_utf8(error)
        before = self.known.get(message.id)
        is_known = before is not None and (before.stage, before.error) == (stage, error)
        tally.counts["known" if is_known else "dead"] += 1
        letter = DeadLetter(
            id=message.id,
            key=_as_text(message.key),
            stage=stage,
            error=error,
            attempts=1 + (before.attempts if before is not None else 0),
            first_seen_at=before.first_seen_at if before is not None else self.moment,
            changeset=message.changeset,
            event=self.event,
        )
        failed.setdefault(message.id, letter)
        if before is None or not self._says_all(before, message, is_known=is_known):
            tally.events.append(self._event(message, letter))

    def _event(self, message: Message, letter: DeadLetter) -> dict[str, Any]:
        return {
            "event": self.event,
            "id": message.id,
            "status": DEAD,
            "key": letter.key,
            "op": message.op,
            "changeset": message.changeset,
            "version": message.version,
            "stage": letter.stage,
            "error": letter.error,
            "payload": None if message.body is None else _as_text(message.body),
            "attempts": letter.attempts,
            "first_seen_at": letter.first_seen_at,
            "seen_at": self.moment,
        }

    def _says_all(self, before: DeadLetter, message: Message, *, is_known: bool) -> bool:
        """Tell whether the letter that is there need not be written again."""
        is_same = self.retries or before.changeset == message.changeset
        return is_known and is_same and (not self.renews or before.event >= self.event)


def _is_plain(kind: pa.DataType) -> bool:
    """Tell whether values of a type are the same in JSON."""
    return bool(pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def _as_text(value: Mapping[str, Any]) -> str:
    """Return values as JSON that people can read."""
    return _in_utf8(json.dumps(value, ensure_ascii=False))


def _in_utf8(text: str) -> str:
    r"""Return a text that can be written: half a surrogate pair becomes `\ud83d`, as in JSON."""
    return text.encode("utf-8", "backslashreplace").decode()


def _stopped(error: EskerError) -> pa.RecordBatch:
    told = {"status": STOPPED, "payload": base64.b64encode(pickle.dumps(error)).decode()}
    return pa.RecordBatch.from_pylist([told], OUTCOME)


def error_of(payload: str) -> EskerError:
    """Return the error that ended a sending."""
    found: EskerError = pickle.loads(base64.b64decode(payload))
    return found
