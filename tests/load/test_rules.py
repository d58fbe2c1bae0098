"""Rows that break rules of the contract go to the quarantine, in every mode; the others are loaded."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from esker.engine.iceberg.stage import StagedFiles, stage
from esker.engine.iceberg.table import TableId
from esker.engine.session import Engine
from esker.errors import BadRows, ColumnsFrozen, FileChangedWhileReading, Held, RulesBroken, TypeConflict
from esker.events import Event, Reached, Step
from esker.load import batch
from tests.contracts.folder import MakeFolder, contract, contract_folder
from tests.folder import Folder

pytestmark = pytest.mark.spark

CONTRACT = contract(
    """
    - {name: id, logicalType: integer, required: true}
    - name: amount
      logicalType: number
      physicalType: decimal(12,2)
      logicalTypeOptions: {minimum: 0, maximum: 1000}
    - name: country
      logicalType: string
      required: true
      logicalTypeOptions: {pattern: "^[A-Z]{2}$"}
      quality:
        - {metric: invalidValues, mustBe: 0, severity: warning, name: known, arguments: {validValues: [DE]}}
    """
)
HEADER = ["id", "amount", "country"]
GOOD = [(1, "5.00", "DE"), (2, "", "FR"), (3, "7.25", "IT")]
BAD: list[tuple[Any, ...]] = [(4, "-1", "de"), (5, "12.345", "DE"), (6, "1", "")]


def project(make_folder: MakeFolder, text: str = CONTRACT, **keys: Any) -> Folder:
    return contract_folder(make_folder, text, **keys)


def quarantined(folder: Folder) -> list[tuple[list[str], str, dict[str, Any]]]:
    rows = folder.rows("shop.sales__quarantine", "row", "rules", "reason", "payload")
    return sorted(((rules, reason, json.loads(payload)) for _, rules, reason, payload in rows), key=repr)


EXPECTED = [
    (
        ["amount.minimum", "country.pattern"],
        'column "amount": "-1.00" is less than 0; column "country": "de" does not match ^[A-Z]{2}$',
        {"id": "4", "amount": "-1", "country": "de"},
    ),
    (
        ["required"],
        'column "country" is required and has no value',
        {"id": "6", "amount": "1", "country": None},
    ),
    (
        ["type"],
        'column "amount": "12.345" is no decimal(12,2)',
        {"id": "5", "amount": "12.345", "country": "DE"},
    ),
]


@pytest.mark.parametrize(
    ("mode", "lane"),
    [
        ("append", None),
        ("replace", None),
        ("upsert", "small"),
        ("upsert", "large"),
        ("insert_only", "small"),
        ("delete_insert", "large"),
        ("sync", "large"),
        ("scd2", "small"),
    ],
)
def test_every_mode(make_folder: MakeFolder, mode: str, lane: str | None) -> None:
    """Read is the sum of all other counts, and each bad row is told with all that is wrong with it."""
    keys: dict[str, Any] = {"key": ["id"], "lane": lane, "changes": "off"} if lane else {}
    folder = project(make_folder, mode=mode, **keys)
    folder.write_csv("landing/a.csv", HEADER, [*GOOD, *BAD])
    result = folder.run()
    assert (result.rows.read, result.rows.inserted, result.rows.quarantined) == (6, 3, 3)
    assert [row[0] for row in folder.rows("shop.sales", "id")] == [1, 2, 3]
    assert quarantined(folder) == EXPECTED
    assert set(folder.rows("shop.sales__quarantine", "pipeline", "run")) == {("sales", result.run_id)}
    assert folder.run().rows.read == 0
    assert len(quarantined(folder)) == 3


def test_rules_cost_no_pass_of_their_own(make_folder: MakeFolder) -> None:
    """As many Spark jobs for sixty rules as for three: all are looked at while rows are read once."""
    properties = "- {name: id, logicalType: integer}\n- {name: amount, logicalType: integer}"
    jobs = []
    for count in (3, 60):
        rules = (f"engine: esker, name: r{n}, implementation: amount < {900 + n}" for n in range(count))
        quality = "\n".join(f"- {{type: custom, {rule}}}" for rule in rules)
        folder = contract_folder(partial(make_folder, f"{count}"), contract(properties, quality))
        folder.write_csv("landing/a.csv", ["id", "amount"], [(1, 5), (2, 6)])
        folder.run()
        folder.write_csv("landing/b.csv", ["id", "amount"], [(number, number) for number in range(1000)])
        context: Any = folder.open().engine.spark.sparkContext
        before = context._jsc.sc().dagScheduler().numTotalJobs()
        result = folder.run()
        jobs.append(context._jsc.sc().dagScheduler().numTotalJobs() - before)
        assert result.rows.quarantined == 100
    assert jobs[0] == jobs[1] > 0


def test_partitions_that_are_swapped(make_folder: MakeFolder) -> None:
    text = CONTRACT.replace("name: country\n", "name: country\n        partitioned: true\n")
    folder = project(make_folder, text, mode="replace_partitions")
    folder.write_csv("landing/a.csv", HEADER, [*GOOD, *BAD])
    assert folder.run().rows.quarantined == 3
    folder.write_csv("landing/b.csv", HEADER, [(9, "1", "FR"), (8, "-1", "DE")])
    result = folder.run()
    assert (result.rows.inserted, result.rows.quarantined) == (1, 1)
    assert folder.rows("shop.sales", "id") == [(1,), (3,), (9,)]


@pytest.mark.parametrize("bad", [[], BAD], ids=["good", "bad"])
def test_tasks_that_are_repeated_change_no_count(
    make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch, bad: list[tuple[Any, ...]]
) -> None:
    """An executor is lost with what it had sent to others: tasks are done twice, their rows counted once."""

    def stage_twice(engine: Engine, table: TableId, frame: DataFrame, group: str) -> StagedFiles:
        frame.write.format("noop").mode("overwrite").save()
        return stage(engine, table, frame, group)

    monkeypatch.setattr(batch, "stage", stage_twice)
    text = CONTRACT.replace("name: country\n", "name: country\n        partitioned: true\n")
    text = text.replace("mustBe: 0, severity: warning", "mustBeLessThan: 4")
    folder = project(make_folder, text, mode="append")
    folder.write_csv("landing/a.csv", HEADER, [*GOOD, *bad])
    result = folder.run()
    assert (result.rows.read, result.rows.inserted, result.rows.quarantined) == (3 + len(bad), 3, len(bad))
    found = {each.metric: each.value for each in folder.open().quality("shop.sales")}
    assert (found["rows_read"], found["rows_bad"]) == (3 + len(bad), len(bad))
    assert found["known"] == (3 if bad else 2)


@pytest.mark.parametrize(
    ("mode", "limits"),
    [
        ("append", {"_SHORT": 10}),
        ("replace", {"_MOST_COLLECTED": 1}),
        ("replace_partitions", {"_SHORT": 10, "_MOST_COLLECTED": 1}),
    ],
)
def test_more_bad_rows_than_come_along(
    make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch, mode: str, limits: dict[str, int]
) -> None:
    """Bad rows that are too long, or too many, are read once more: each is in the quarantine, and once."""
    for name, value in {**limits, "_WORTH_A_TASK": 2}.items():
        monkeypatch.setattr(batch, name, value)
    text = CONTRACT.replace("name: country\n", "name: country\n        partitioned: true\n")
    folder = project(make_folder, text, mode=mode)
    more: list[tuple[Any, ...]] = [(number, "-1", "DE") for number in range(10, 20)]
    folder.write_csv("landing/a.csv", HEADER, [*GOOD, *BAD, *more])
    result = folder.run()
    assert (result.rows.read, result.rows.inserted, result.rows.quarantined) == (16, 3, 13)
    assert [row[0] for row in folder.rows("shop.sales", "id")] == [1, 2, 3]
    found = quarantined(folder)
    assert [each for each in found if int(each[2]["id"]) < 10] == EXPECTED
    assert sorted(int(each[2]["id"]) for each in found) == [4, 5, 6, *range(10, 20)]
    assert len(set(folder.rows("shop.sales__quarantine", "row"))) == 13
    counts = {each.metric: each.value for each in folder.open().quality("shop.sales")}
    names = ("rows_read", "rows_bad", "amount.minimum", "country.pattern", "type", "required", "known")
    assert [counts[name] for name in names] == [16, 13, 11, 1, 1, 1, 3]
    assert folder.run().rows.read == 0


def test_bad_rows_that_are_no_longer_what_they_were(
    make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file changes before its bad rows are read once more: nothing is published."""
    monkeypatch.setattr(batch, "_SHORT", 10)
    folder = project(make_folder)
    folder.write_csv("landing/a.csv", HEADER, [*GOOD, *BAD])

    def change(event: Event) -> None:
        if isinstance(event, Reached) and event.step is Step.RECORDED:
            folder.write_csv("landing/a.csv", HEADER, [*GOOD, *BAD[:2], (7, "1", "IT")])

    with pytest.raises(FileChangedWhileReading):
        folder.run(listen=change)
    assert folder.rows("shop.sales") == []
    result = folder.run()
    assert (result.rows.read, result.rows.inserted, result.rows.quarantined) == (6, 4, 2)
    assert quarantined(folder) == [EXPECTED[0], EXPECTED[2]]


@pytest.mark.parametrize("lane", ["small", "large"])
def test_keys_of_bad_rows_are_not_missing(make_folder: MakeFolder, lane: str) -> None:
    """A complete snapshot has the key, though in a row that cannot be loaded: it is no delete."""
    folder = project(make_folder, mode="sync", key=["id"], lane=lane, guard={"max_delete": "100%"})
    folder.write_csv("landing/a.csv", HEADER, [(1, "1", "DE"), (2, "2", "DE"), (3, "3", "DE")])
    folder.run()
    folder.write_csv("landing/a.csv", HEADER, [(1, "1", "DE"), (2, "-2", "DE")])
    result = folder.run()
    assert (result.rows.unchanged, result.rows.quarantined, result.rows.missing) == (1, 1, 1)
    assert folder.rows("shop.sales", "id", "amount", "deleted") == [
        (1, pytest.approx(1), False),
        (2, pytest.approx(2), False),
        (3, pytest.approx(3), True),
    ]


@pytest.mark.parametrize("lane", ["small", "large"])
def test_deletes_need_only_a_key(make_folder: MakeFolder, lane: str) -> None:
    folder = project(
        make_folder, mode="upsert", key=["id"], lane=lane, deletes="hard", delete_when="amount < 0"
    )
    folder.write_csv("landing/a.csv", HEADER, [(1, "1", "DE"), (2, "2", "DE")])
    folder.run()
    folder.write_csv("landing/b.csv", HEADER, [(1, "-1", "")])
    result = folder.run()
    assert (result.rows.deleted, result.rows.quarantined) == (1, 0)


def test_rows_that_are_handed_over(make_folder: MakeFolder) -> None:
    """As Arrow, in both lanes; payloads are what was handed over."""
    rows = pa.table({"id": [1, 2], "amount": [5.0, -1.0], "country": ["DE", "DE"]})
    for lane in ("small", "large"):
        folder = project(make_folder, mode="upsert", key=["id"], lane=lane)
        folder.document["pipelines"]["sales"]["table"] = f"shop.{lane}"
        folder.save()
        project_ = folder.open()
        with pytest.raises(TypeConflict):
            project_.load("sales", rows)  # a double does not become a decimal unseen
        exact = rows.set_column(1, "amount", rows.column("amount").cast(pa.decimal128(12, 2)))
        result = project_.load("sales", exact)
        assert (result.rows.inserted, result.rows.quarantined) == (1, 1)
        [(payload,)] = folder.rows(f"shop.{lane}__quarantine", "payload")
        assert json.loads(payload) == {"id": "2", "amount": "-1.00", "country": "DE"}


def test_bad_rows_are_told_as_they_were_sent(make_folder: MakeFolder) -> None:
    """Values of every kind, also a day that the Julian calendar has not, on their way to the quarantine."""
    text = contract(
        """
        - {name: id, logicalType: integer, logicalTypeOptions: {minimum: 1}}
        - {name: day, logicalType: date}
        - {name: at, logicalType: timestamp}
        - {name: price, logicalType: number, physicalType: "decimal(38,18)"}
        - {name: raw, logicalType: string, physicalType: binary}
        - {name: ratio, logicalType: number, physicalType: double}
        - name: tags
          logicalType: array
          items: {name: tag, logicalType: date}
        """
    )
    folder = project(make_folder, text, path="landing/*.parquet", format="parquet")
    days = [date(1582, 10, 10), date(1, 1, 1), date(2026, 11, 3)]
    rows = pa.table(
        {
            "id": pa.array([-1, -2, 3]),
            "day": pa.array(days, pa.date32()),
            "at": pa.array(
                [
                    datetime(1582, 10, 12, 1, 2, 3, 456789, UTC),
                    datetime(1, 1, 1, tzinfo=UTC),
                    datetime(2026, 1, 1, tzinfo=UTC),
                ]
            ),
            "price": pa.array([Decimal("1.000000000000000001"), None, Decimal(1)], pa.decimal128(38, 18)),
            "raw": pa.array([b"\x00\xff", b"", None]),
            "ratio": pa.array([0.1, float("nan"), 1.0]),
            "tags": pa.array([[days[0], None], None, []], pa.list_(pa.date32())),
        }
    )
    (folder.path / "landing").mkdir(exist_ok=True)
    pq.write_table(rows, folder.path / "landing" / "a.parquet")
    result = folder.run()
    assert (result.rows.inserted, result.rows.quarantined) == (1, 2)
    payloads = [json.loads(payload) for (payload,) in folder.rows("shop.sales__quarantine", "payload")]
    assert sorted(payloads, key=lambda row: int(row["id"])) == [
        {
            "id": "-2",
            "day": "0001-01-01",
            "at": "0001-01-01 00:00:00",
            "price": None,
            "raw": "",
            "ratio": "NaN",
            "tags": None,
        },
        {
            "id": "-1",
            "day": "1582-10-10",
            "at": "1582-10-12 01:02:03.456789",
            "price": "1.000000000000000001",
            "raw": "AP8=",
            "ratio": "0.1",
            "tags": ["1582-10-10", None],
        },
    ]


@pytest.mark.parametrize("good", [200, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_a_record_that_cannot_be_parsed(make_folder: MakeFolder, good: int) -> None:
    folder = project(make_folder, path="landing/*.jsonl", format="jsonl")
    lines = [json.dumps({"id": number, "amount": 1, "country": "DE"}) for number in range(good)]
    folder.write("landing/a.jsonl", "\n".join([*lines[:100], '{"id": 7, "amo', *lines[100:]]) + "\n")
    result = folder.run()
    assert (result.rows.inserted, result.rows.quarantined) == (good, 1)
    [(rules, reason, payload)] = folder.rows("shop.sales__quarantine", "rules", "reason", "payload")
    assert rules == ["malformed"]
    assert "is no JSON object" in reason
    assert payload == '{"id": 7, "amo'


def test_nothing_but_bad_rows_is_held(make_folder: MakeFolder) -> None:
    modes: dict[str, dict[str, Any]] = {"append": {}, "replace": {}, "upsert": {"key": ["id"]}}
    for mode, keys in modes.items():
        folder = project(make_folder, mode=mode, **keys)
        folder.document["pipelines"]["sales"]["table"] = f"shop.{mode}"
        folder.save()
        folder.write_csv("landing/a.csv", HEADER, BAD)
        with pytest.raises(Held, match="3 of its 3 rows would go to the quarantine: none would be loaded"):
            folder.run()
        assert folder.rows(f"shop.{mode}") == []
        approved = folder.open().approve("sales")
        assert approved.status == "succeeded"
        assert (approved.rows.quarantined, approved.rows.inserted) == (3, 0)


def test_limits(make_folder: MakeFolder) -> None:
    """A share of bad rows at which a batch is held, and one at which the run fails."""
    above = CONTRACT.replace(
        "logicalTypeOptions: {minimum: 0, maximum: 1000}",
        "logicalTypeOptions: {minimum: 0, maximum: 1000}\n"
        "        customProperties: [{property: holdAbove, value: 1}, {property: failAbove, value: 50%}]",
    )
    folder = project(make_folder, above)
    rows = [(number, number, "DE") for number in range(10)]
    folder.write_csv("landing/a.csv", HEADER, [*rows, (10, "-1", "DE")])
    assert folder.run().rows.quarantined == 1
    folder.write_csv("landing/b.csv", HEADER, [*rows, (10, "-1", "DE"), (11, "-1", "DE")])
    with pytest.raises(
        Held, match=r'2 of its 12 rows break the rule "amount.minimum", and at most 1 rows may'
    ):
        folder.run()
    assert folder.open().approve("sales").rows.quarantined == 2
    folder.write_csv("landing/c.csv", HEADER, [(number, "-1", "DE") for number in range(3)])
    with pytest.raises(RulesBroken, match=r'3 of 3 rows break the rule "amount.minimum"') as caught:
        folder.run()
    assert caught.value.exit_status == 3
    assert len(folder.rows("shop.sales")) == 20


def test_a_share_of_the_rows_may_break_a_rule(make_folder: MakeFolder) -> None:
    """With a bound other than zero the rows are loaded, and the batch is held beyond it."""
    text = CONTRACT.replace("required: true\n        logicalTypeOptions", "logicalTypeOptions")
    text += " " * 10 + "- {metric: nullValues, mustBeLessThan: 20, unit: percent, name: filled}\n"
    folder = project(make_folder, text)
    folder.write_csv("landing/a.csv", HEADER, [*[(n, 1, "DE") for n in range(9)], (9, 1, "")])
    assert folder.run().rows.inserted == 10
    folder.write_csv("landing/b.csv", HEADER, [(1, 1, "DE"), (2, 1, "")])
    with pytest.raises(
        Held, match=r'1 of its 2 rows break the rule "filled", and their number must be less than 20 %'
    ):
        folder.run()


def test_without_a_contract_bad_rows_fail_unless_told_otherwise(make_folder: MakeFolder) -> None:
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(columns={"id": "int"})})
    folder.write_csv("landing/a.csv", ["id"], [(1,), ("x",)])
    with pytest.raises(BadRows):
        folder.run()
    folder.change(bad_rows="quarantine")
    assert folder.run().rows.quarantined == 1


def test_with_a_contract_bad_rows_may_fail_the_run(make_folder: MakeFolder) -> None:
    folder = project(make_folder, bad_rows="fail")
    folder.write_csv("landing/a.csv", HEADER, [*GOOD, *BAD])
    with pytest.raises(BadRows, match="3 of 6 rows") as caught:
        folder.run()
    assert "a.csv: column" in caught.value.reason


def test_what_a_table_refuses_is_told_by_the_plan(make_folder: MakeFolder) -> None:
    folder = project(make_folder)
    folder.write_csv("landing/a.csv", [*HEADER, "extra"], [(1, 1, "DE", "x")])
    with pytest.raises(ColumnsFrozen, match="extra"):
        folder.run()
    folder.change(evolution="discard_column")
    assert folder.run().rows.inserted == 1
    assert folder.open().table("shop.sales").columns == HEADER
