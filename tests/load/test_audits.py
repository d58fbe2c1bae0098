"""Audits look at the whole table as it would be; what fails is held, and can be looked at on its branch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from esker.errors import ExpressionFailed, Held, InvalidRule
from esker.events import Event, Reached, Step
from esker.load import audits, publish
from tests.contracts.folder import MakeFolder, change_contract, contract, contract_folder
from tests.folder import Folder

pytestmark = pytest.mark.spark

BRANCH = "esker_staged_sales"
PROPERTIES = """
- {name: id, logicalType: integer, required: true}
- {name: amount, logicalType: integer}
- {name: at, logicalType: timestamp}
"""
MODES: list[dict[str, Any]] = [
    {"mode": "append"},
    {"mode": "replace"},
    {"mode": "upsert", "key": ["id"], "lane": "small"},
    {"mode": "upsert", "key": ["id"], "lane": "large"},
]


def project(make_folder: MakeFolder, audits: str = "", status: str = "active", **keys: Any) -> Folder:
    return contract_folder(make_folder, contract(PROPERTIES, audits, status=status), **keys)


def branches(folder: Folder) -> list[str]:
    frame = folder.open().engine.spark.sql("SELECT name FROM lake.shop.sales.refs WHERE type = 'BRANCH'")
    return sorted(row[0] for row in frame.collect())


def staged(folder: Folder) -> list[int]:
    frame = folder.open().engine.spark.sql(f"SELECT id FROM lake.shop.sales VERSION AS OF '{BRANCH}'")
    return sorted(row[0] for row in frame.collect())


def write(folder: Folder, name: str, rows: list[tuple[Any, ...]]) -> None:
    folder.write_csv(f"landing/{name}.csv", ["id", "amount"], rows)


SUM = "- {type: sql, name: total, query: 'SELECT sum(amount) FROM ${table}', mustBeLessOrEqualTo: 100}"


@pytest.mark.parametrize("keys", MODES, ids=["append", "replace", "small", "large"])
def test_a_failed_audit_leaves_the_table_untouched(make_folder: MakeFolder, keys: dict[str, Any]) -> None:
    folder = project(make_folder, SUM, **keys)
    write(folder, "a", [(1, 10), (2, 20)])
    first = folder.run()
    assert first.rows.inserted == 2
    assert branches(folder) == ["main"]
    write(folder, "a" if keys["mode"] == "replace" else "b", [(1, 10), (3, 95)])
    with pytest.raises(Held, match=r'audit "total" is .*, and must be at most 100') as caught:
        folder.run()
    assert f"VERSION AS OF '{BRANCH}'" in caught.value.remedy
    assert [row[0] for row in folder.rows("shop.sales", "id")] == [1, 2]
    assert 3 in staged(folder)
    held = {each.metric: each for each in folder.open().quality("shop.sales", held=True)}
    assert (held["total"].passed, held["total"].changeset) == (False, 2)
    found = {each.metric: each for each in folder.open().quality("shop.sales")}
    assert (found["total"].passed, found["total"].changeset) == (True, 1)
    assert found["record_count"].changeset == 1
    assert held["total"].snapshot != first.snapshot_id
    result = folder.open().approve("sales")
    assert result.status == "succeeded", result.error
    assert 3 in [row[0] for row in folder.rows("shop.sales", "id")]
    assert branches(folder) == ["main"]
    assert result.changeset == 2
    assert folder.run().rows.read == 0


def test_what_was_looked_at_is_published(make_folder: MakeFolder) -> None:
    """The audited snapshot itself becomes the table's, with ledger and log in the same commit."""
    folder = project(make_folder, SUM, mode="upsert", key=["id"])
    for number in range(3):
        write(folder, str(number), [(number, 1)])
        result = folder.run()
        assert result.changeset == number + 1
    spark = folder.open().engine.spark
    snapshots = [row[0] for row in spark.sql("SELECT snapshot_id FROM lake.shop.sales.snapshots").collect()]
    history = [row[0] for row in spark.sql("SELECT snapshot_id FROM lake.shop.sales.history").collect()]
    assert snapshots == history  # no copy of a snapshot beside it
    assert result.snapshot_id == history[-1]
    assert folder.open().table("shop.sales__changes").count() == 3


def test_rejected(make_folder: MakeFolder) -> None:
    folder = project(make_folder, SUM)
    write(folder, "a", [(1, 1000)])
    with pytest.raises(Held):
        folder.run()
    with pytest.raises(Held):
        folder.run()  # asks again, on a new branch in the place of the old one
    folder.open().reject("sales")
    assert branches(folder) == ["main"]
    write(folder, "b", [(2, 5)])
    assert folder.run().rows.inserted == 1
    assert folder.rows("shop.sales", "id") == [(2,)]


@pytest.mark.parametrize(
    ("audit", "rows", "told"),
    [
        ("- {metric: rowCount, mustBeGreaterThan: 3, name: enough}", [(1, 1)], '"enough" is 1, and must be'),
        (
            "- {type: sql, query: 'SELECT 1 FROM {object} WHERE id = 5', mustBe: 1, name: five}",
            [(5, 1)],
            None,
        ),
        (
            "- {type: custom, engine: esker, implementation: {rowCountChange: {mustBeBetween: [-50, 50]}}}",
            [(2, 1), (3, 1)],
            '"row_count_change.previous" is 200',
        ),
        (
            "- {type: custom, engine: esker, implementation:"
            " {rowCountChange: {against: weekday, mustBeBetween: [-50, 50]}}}",
            [(2, 1), (3, 1)],
            None,
        ),
        ("- {metric: rowCount, mustBeLessThan: 2, name: few, severity: warning}", [(1, 1), (2, 1)], None),
        (
            "- {type: sql, name: key, mustBe: 0,"
            " query: 'SELECT count(*) - count(DISTINCT id) FROM ${table}'}",
            [(1, 1), (1, 2)],
            '"key" is 2, and must be 0',
        ),
        (
            "- {type: sql, name: nulls, mustBeLessThan: 30,"
            " query: 'SELECT 100 * count_if(amount IS NULL) / count(*) FROM ${table}'}",
            [(1, 1), (2, "")],
            '"nulls" is 33.3333, and must be less than 30',
        ),
    ],
    ids=["row_count", "sql", "change", "first_week", "warning", "key", "nulls"],
)
def test_kinds(make_folder: MakeFolder, audit: str, rows: list[tuple[Any, ...]], told: str | None) -> None:
    folder = project(make_folder, audit)
    write(folder, "a", rows[:1])
    if told is not None and "enough" in told:
        with pytest.raises(Held, match=told):
            folder.run()
        return
    folder.run()
    write(folder, "b", [*rows, *rows[1:]][:2])
    if told is not None:
        with pytest.raises(Held, match=told):
            folder.run()
        return
    result = folder.run()
    assert result.status == "succeeded"
    if "warning" in audit:
        assert any(note.startswith('audit "few" is') for note in result.notes)


def test_a_week_and_a_day_ago(make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is compared with what it was a week ago, and its growth is that of a day.

    The batch before the last one is a week old by the clock of audits, and a day by that of publishes.
    """
    change = "{rowCountChange: {against: weekday, mustBeBetween: [-50, 150]}}"
    folder = project(make_folder, f"- {{type: custom, engine: esker, implementation: {change}}}")
    write(folder, "a", [(1, 1), (2, 1)])
    folder.run()
    between = datetime.now(UTC)
    write(folder, "b", [(3, 1), (4, 1)])
    folder.run()
    first = {each.metric for each in folder.open().quality("shop.sales")}
    assert "daily_growth" not in first  # the table is younger than a day

    def stand(module: Any, moment: datetime) -> None:
        class Clock(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
                return moment

        monkeypatch.setattr(module, "datetime", Clock)

    stand(audits, between + timedelta(days=7))
    stand(publish, between + timedelta(days=1))
    write(folder, "c", [(5, 1), (6, 1)])
    with pytest.raises(Held, match=r'"row_count_change.weekday" is 200, and must be between -50 and 150'):
        folder.run()  # 6 rows, and 2 then; 4 of them are yesterday's
    assert folder.open().approve("sales").rows.inserted == 2
    found = {each.metric: each.value for each in folder.open().quality("shop.sales")}
    assert (found["row_count_change.weekday"], found["daily_growth"], found["record_count"]) == (200, 4, 6)


def test_freshness(make_folder: MakeFolder) -> None:
    folder = project(make_folder)
    sla = "slaProperties: [{property: latency, value: 2, unit: h, element: sales.at}]"
    change_contract(folder, "schema:", f"{sla}\nschema:")
    now = datetime.now(UTC)
    old, new = ((now - timedelta(hours=hours)).isoformat() for hours in (5, 1))
    folder.write_csv("landing/a.csv", ["id", "at"], [(1, old)])
    with pytest.raises(Held, match=r'audit "at.freshness" is 30\d'):
        folder.run()
    folder.open().reject("sales")
    folder.write_csv("landing/b.csv", ["id", "at"], [(1, old), (2, new)])
    assert folder.run().rows.inserted == 2


@pytest.mark.parametrize("keys", MODES[::2], ids=["append", "upsert"])
def test_drafts_are_staged_and_held(make_folder: MakeFolder, keys: dict[str, Any]) -> None:
    """Nobody has said yet that this source may go to production."""
    folder = project(make_folder, status="draft", **keys)
    write(folder, "a", [(1, 1), (2, 2)])
    with pytest.raises(Held, match="its contract is a draft"):
        folder.run()
    assert folder.rows("shop.sales", "id") == []
    assert staged(folder) == [1, 2]
    change_contract(folder, "status: draft", "status: active")
    assert folder.run().rows.inserted == 2
    assert folder.rows("shop.sales", "id") == [(1,), (2,)]


def test_rows_that_are_handed_over(make_folder: MakeFolder) -> None:
    folder = project(make_folder, SUM)
    rows = pa.table({"id": [1], "amount": [500]})
    with pytest.raises(Held) as caught:
        folder.open().load("sales", rows)
    assert folder.open().load("sales", rows, approved=caught.value).rows.inserted == 1


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The snapshots that audits have looked at."""
    seen: list[int] = []
    check = audits.Audits.check

    def counted(self: audits.Audits, staged: int, *arguments: Any) -> Any:
        seen.append(staged)
        return check(self, staged, *arguments)

    monkeypatch.setattr(audits.Audits, "check", counted)
    return seen


def assert_added_once(folder: Folder) -> None:
    """No file is added by two snapshots: some engines delete such files when one of them expires."""
    twice = folder.open().engine.spark.sql(
        "SELECT data_file.file_path FROM lake.shop.sales.all_entries WHERE status = 1 "
        "GROUP BY data_file.file_path HAVING count(DISTINCT snapshot_id) > 1"
    )
    assert twice.collect() == []


@pytest.mark.parametrize("keys", [MODES[0], MODES[2]], ids=["append", "small"])
def test_a_compaction_while_audits_look(
    make_folder: MakeFolder, keys: dict[str, Any], looks: list[int]
) -> None:
    """The table's rows are the same, so what was looked at is published without another look."""
    folder = project(make_folder, SUM, **keys)
    write(folder, "a", [(1, 10), (2, 20)])
    folder.run()
    write(folder, "b", [(2, 30), (3, 40)])
    looks.clear()
    done: list[Event] = []

    def compact(event: Event) -> None:
        if isinstance(event, Reached) and event.step is Step.BEFORE_COMMIT and not done:
            done.append(event)
            folder.open().engine.spark.sql(
                "CALL lake.system.rewrite_data_files('shop.sales', options => map('rewrite-all', 'true'))"
            )

    result = folder.run(listen=compact)
    assert (result.status, result.changeset, len(looks)) == ("succeeded", 2, 1)
    kept = [(2, 20)] if keys["mode"] == "append" else []
    assert folder.rows("shop.sales", "id", "amount") == [(1, 10), *kept, (2, 30), (3, 40)]
    assert branches(folder) == ["main"]
    spark = folder.open().engine.spark
    operations = [row[0] for row in spark.sql("SELECT operation FROM lake.shop.sales.snapshots").collect()]
    assert "replace" in operations
    assert_added_once(folder)
    audited = [each for each in folder.open().quality("shop.sales") if each.metric == "total"]
    assert (audited[0].passed, audited[0].changeset, audited[0].snapshot) == (True, 2, result.snapshot_id)
    assert folder.run().rows.read == 0


def test_somebody_commits_while_audits_look(make_folder: MakeFolder, looks: list[int]) -> None:
    """The batch is made and looked at again, on what the table holds by then."""
    folder = project(make_folder, SUM)
    write(folder, "a", [(1, 10)])
    folder.run()
    looks.clear()
    write(folder, "b", [(2, 20)])
    done: list[Event] = []

    def meddle(event: Event) -> None:
        if isinstance(event, Reached) and event.step is Step.BEFORE_COMMIT and not done:
            done.append(event)
            spark = folder.open().engine.spark
            spark.sql("INSERT INTO lake.shop.sales VALUES (9, 60, NULL)")

    result = folder.run(listen=meddle)
    assert result.status == "succeeded"
    assert len(looks) == 2
    assert [row[0] for row in folder.rows("shop.sales", "id")] == [1, 2, 9]
    assert branches(folder) == ["main"]
    spark = folder.open().engine.spark
    [main] = spark.sql("SELECT snapshot_id FROM lake.shop.sales.refs WHERE name = 'main'").collect()
    assert result.snapshot_id == main[0]
    assert_added_once(folder)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELEC 1", "Syntax error"),
        ("SELECT sum(amout) FROM ${table}", "`amout` cannot be resolved. Did you mean one of the following"),
        ("SELECT max(at) FROM ${table}", "it gives timestamp, and not a number"),
        ("DROP TABLE shop.sales", "Syntax error"),
    ],
)  # fmt: skip
def test_queries_that_spark_cannot_take(make_folder: MakeFolder, query: str, told: str) -> None:
    """The plan says so, with the line of the query, before anything is loaded."""
    folder = project(make_folder, f"- {{type: sql, name: total, mustBe: 1, query: '{query}'}}")
    write(folder, "a", [(1, 10)])
    [plan] = folder.open().plan()
    assert isinstance(plan.error, InvalidRule)
    assert plan.error.message.startswith('contracts/sales.odcs.yaml:13: rule "total" cannot be checked: ')
    assert told in plan.error.message
    with pytest.raises(InvalidRule):
        folder.run()
    assert folder.open().metadata("shop.sales").stored is None


def test_queries_that_fail_when_they_are_asked(make_folder: MakeFolder) -> None:
    """The table stays as it is, and the contract is told as what is wrong. Other tables may come late."""
    late = "- {type: sql, name: late, mustBe: 1, query: 'SELECT count(*) FROM shop.limits'}"
    folder = project(make_folder, late)
    write(folder, "a", [(1, 0)])
    [plan] = folder.open().plan()
    assert plan.error is None
    with pytest.raises(InvalidRule, match=r"`shop`\.`limits` cannot be found"):
        folder.run()
    folder.open().engine.spark.sql("CREATE TABLE lake.shop.limits AS SELECT 1 AS most")
    assert folder.run().rows.inserted == 1
    change_contract(folder, "count(*) FROM shop.limits", "1 / min(amount) FROM ${table}")
    write(folder, "b", [(2, 1)])
    with pytest.raises(ExpressionFailed, match='cannot check the rule "late"') as caught:
        folder.run()
    assert "Division by zero" in caught.value.reason
    assert folder.rows("shop.sales", "id") == [(1,)]
