"""What becomes of rows that are sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from esker.deliver.sending import ID, Sending
from esker.deliver.targets.content import NotJson, as_json
from esker.deliver.targets.target import Message, Refused, Sender, Target
from esker.deliver.transform import Transform
from esker.ledger.change_log import CHANGESET, OP
from esker.ledger.dead_letter_events import DeadLetter
from esker.ledger.process import this_process

HALF = "\ud83d"
"""Half a surrogate pair, as an answer that was cut in the middle has it: no character, and no UTF-8."""
MOMENT = datetime(2026, 1, 2, tzinfo=UTC)


class Strict(Target):
    """Refuses what cannot be written as JSON, and whatever a body says."""

    def open(self) -> Sender:
        return StrictSender()

    def describe(self) -> str:
        return "the strict one"


class StrictSender(Sender):
    def send(self, messages: Sequence[Message]) -> list[Refused]:
        return [Refused(each, why) for each in messages if (why := _why(each)) is not None]


def _why(message: Message) -> str | None:
    assert message.body is not None
    try:
        as_json(message.body)
    except NotJson as error:
        return str(error)
    return HALF if message.body["title"] == "strange" else None


def _to_work(row: dict[str, Any]) -> dict[str, Any]:
    if row["title"] == "fails":
        raise ValueError(f"no title: é{HALF}")
    return {"id": row["id"], "title": f"é{HALF}" if row["title"] == "half" else row["title"]}


def _sent(known: dict[str, DeadLetter], *titles: str) -> list[dict[str, Any]]:
    """Send rows, and return what became of them."""
    numbers = list(range(1, len(titles) + 1))
    rows = pa.RecordBatch.from_pydict(
        {
            CHANGESET: numbers,
            OP: ["insert"] * len(titles),
            f"{ID}0": numbers,
            "id": numbers,
            "title": titles,
        }
    )
    sending = Sending(
        target=Strict(),
        table="shop.works",
        ids=("id",),
        transform=Transform(_to_work, "row", ("id",)),
        known=known,
        event=1,
        moment=MOMENT,
        driver=this_process(),
        lot=10,
        retries=True,
    )
    return [each for batch in sending.send([rows]) for each in batch.to_pylist()]


def test_a_text_that_is_no_utf_8_is_a_letter_like_others() -> None:
    """In a body, in what a transform raises, and in what a target says. The other rows arrive."""
    titles = ["good", "half", "fails", "strange"]
    *letters, counts = _sent({}, *titles)
    assert (counts["rows"], counts["sent"], counts["dead"]) == (4, 1, 3)
    by_id = {each["id"]: each for each in letters}
    assert [by_id[id_]["stage"] for id_ in "234"] == ["target", "transform", "target"]
    # What can be read stays readable, and JSON gives back what it was.
    assert by_id["2"]["payload"] == r'{"id": 2, "title": "é\ud83d"}'
    assert json.loads(by_id["2"]["payload"]) == {"id": 2, "title": f"é{HALF}"}
    assert by_id["3"]["error"].startswith(r"ValueError: no title: é\ud83d (")
    assert by_id["4"]["error"] == r"\ud83d"

    names = DeadLetter.__dataclass_fields__
    known = {id_: DeadLetter(**{name: each[name] for name in names}) for id_, each in by_id.items()}
    *_, counts = _sent(known, *titles)
    assert (counts["dead"], counts["known"]) == (0, 3)
