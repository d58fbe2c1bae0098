"""Rows as a transform makes them: each from one of the source's, with all that is known of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from esker.engine.pins import is_spark
from esker.errors import TransformRefused
from tests.folder import Folder

pytestmark = pytest.mark.spark
MakeFolder = Callable[..., Folder]


def csv(make_folder: MakeFolder, transform: Any, **keys: Any) -> Folder:
    folder = make_folder(
        pipelines={"sales": Folder.files_pipeline(transform=transform, bad_rows="quarantine", **keys)}
    )
    folder.write("landing/a.csv", "id,name,amount\n1,one,1.50\n2,two,x\n3,three,7,7\n4,four,4.00\n")
    return folder


def jsonl(make_folder: MakeFolder, transform: Any, **keys: Any) -> Folder:
    pipeline = Folder.files_pipeline("landing/*.jsonl", "jsonl", transform=transform, **keys)
    return make_folder(pipelines={"sales": pipeline})


def test_rows_that_cannot_be_read_pass_by(make_folder: MakeFolder) -> None:
    """Texts are parsed as the table's types after the transform; a torn line passes its WHERE."""
    sql = "SELECT bigint(id) AS number, upper(name) AS name, amount FROM input AS i WHERE i.id <> '4'"
    folder = csv(make_folder, sql, columns={"number": "int", "name": "string", "amount": "decimal(12,2)"})
    counts = folder.run().rows
    assert (counts.read, counts.inserted, counts.quarantined) == (3, 1, 2)
    assert [tuple(map(str, row)) for row in folder.rows()] == [("1", "ONE", "1.50")]
    waiting = folder.open().show_quarantined("sales")
    assert {row["rules"][0]: row["payload"] for row in waiting} == {
        "malformed": "3,three,7,7",
        "type": '{"number":"2","name":"TWO","amount":"x"}',
    }
    assert {row["origin"].rpartition("/")[2] for row in waiting} == {"a.csv"}


def test_a_date_is_parsed_by_its_pattern(make_folder: MakeFolder) -> None:
    """What does not fit is null on every Spark; 3.5 would stop where Spark 2 had made a date of it."""
    folder = csv(make_folder, "SELECT id, date(try_to_timestamp(day, 'yyyy-MM-dd')) AS day FROM input")
    folder.write("landing/a.csv", "id,day\n1,2026-01-05\n2,2026-1-5\n")
    folder.run()
    assert folder.rows("shop.sales", "id", "day") == [("1", date(2026, 1, 5)), ("2", None)]


def test_a_row_is_transformed_once(make_folder: MakeFolder) -> None:
    """Rows that are handed over go through it; those of the quarantine have been through it."""
    sql = "SELECT int(id) + 10 AS id, amount FROM input"
    columns = {"id": "int", "amount": "decimal(12,2)"}
    folder = csv(make_folder, sql, columns=columns, mode="upsert", key=["id"])
    folder.write("landing/a.csv", "id,amount\n1,1.50\n2,x\n")
    folder.run()
    folder.open().load("sales", [{"id": 3, "amount": "3.00"}])
    assert [row[0] for row in folder.rows("shop.sales", "id")] == [11, 13]
    replayed = folder.open().replay("sales").rows
    assert (replayed.read, replayed.quarantined) == (1, 1)
    payloads = [json.loads(row["payload"]) for row in folder.open().show_quarantined("sales")]
    assert {(payload["id"], payload["amount"]) for payload in payloads} == {("12", "x")}


def test_the_order_of_arrival_stays(make_folder: MakeFolder) -> None:
    """Of versions that are equally new the last one wins: by file, then by line."""
    folder = csv(make_folder, "SELECT id, name FROM input", mode="upsert", key=["id"])
    folder.write("landing/a.csv", "id,name\n" + "".join(f"{n % 3},a{n}\n" for n in range(300)))
    folder.write("landing/b.csv", "id,name\n0,b1\n0,b2\n")
    folder.run()
    assert folder.rows("shop.sales", "id", "name") == [("0", "b2"), ("1", "a298"), ("2", "a299")]


def test_what_a_batch_may_lack(make_folder: MakeFolder) -> None:
    """Declared columns are null where no record has them, and JSON stays as it was written."""
    sql = "SELECT id, data, size(parts) AS parts, 2 * n AS n FROM input"
    transform = {"sql": sql, "input": {"data": "string", "parts": "array<string>", "n": "int"}}
    folder = jsonl(make_folder, transform, columns={"id": "int", "parts": "int", "n": "int"})
    folder.write("landing/a.jsonl", '{"id": 1}\n')
    folder.run()
    folder.write("landing/b.jsonl", '{"id": 2, "data": {"b": [1, "ä"]}, "parts": [{"x": 1}, 2], "n": 4}\n')
    folder.run()
    data = '{"b":[1,"ä"]}' if is_spark("3.5") else '{"b": [1, "ä"]}'  # there without blanks
    assert folder.rows("shop.sales", "id", "data") == [(1, None), (2, data)]
    assert folder.rows("shop.sales", "parts", "n") == [(2, 8), (None, None)]


def test_a_batch_without_rows(make_folder: MakeFolder) -> None:
    """Nothing tells its columns, and nothing is missing; what cannot be read is told all the same."""
    folder = jsonl(make_folder, "SELECT id FROM input", columns={"id": "int"}, bad_rows="quarantine")
    folder.write("landing/a.jsonl", '{"id": 1}\n')
    folder.run()
    folder.write("landing/b.jsonl", "")
    assert folder.run().rows.read == 0
    folder.write("landing/c.jsonl", '{"id": 2}\n[3]\n')
    counts = folder.run().rows
    assert (counts.inserted, counts.quarantined) == (1, 1)
    assert folder.rows() == [(1,), (2,)]


def test_a_star_brings_no_column_of_ours(make_folder: MakeFolder) -> None:
    folder = csv(make_folder, "SELECT *, name || '!' AS loud FROM input")
    folder.run()
    assert folder.open().table("shop.sales").columns == ["id", "name", "amount", "loud"]
    assert folder.open().peek("sales").columns == ("id", "name", "amount", "loud")
    assert folder.open().read("sales", limit=1).column_names == ["id", "name", "amount", "loud"]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT id, count(*) AS n FROM input GROUP BY id", "Aggregate"),
        ("SELECT count(*) AS n FROM input", "GROUP BY"),
        ("SELECT DISTINCT id FROM input", "Distinct"),
        ("SELECT id FROM input ORDER BY id", "Sort"),
        ("SELECT id FROM input LIMIT 5", "GlobalLimit"),
        ("SELECT id, row_number() OVER (ORDER BY id) AS n FROM input", "other rows"),
        ("SELECT id FROM input WHERE lag(id) OVER (ORDER BY id) IS NULL", "other rows"),
        ("SELECT a.id FROM input AS a, input AS b", "Join"),
        ("SELECT id FROM shop.other", "UnresolvedRelation"),
        ("SELECT colour FROM input", r"colour.*input has: id, name, amount"),
        ("SELEC id FROM input WHERE select FROM", "SELEC"),
        ("DELETE FROM x WHERE a IN (SELECT a FROM input)", "DeleteFromTable"),
    ],
)
def test_what_looks_at_several_rows_is_refused(make_folder: MakeFolder, sql: str, why: str) -> None:
    """A batch is no unit of meaning: sums over it, or its first rows, would be chance."""
    with pytest.raises(TransformRefused) as caught:
        csv(make_folder, sql).run()
    assert re.search(why, caught.value.reason, re.DOTALL), caught.value.reason
