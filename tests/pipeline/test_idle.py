"""A run with nothing to do ends without Spark, and says what it would have said with it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from esker.errors import FileChanged, LedgerMissing, SideTableForeign, TableRewound, UnknownReference
from esker.events import Reached, Step
from esker.ledger import state as state_module
from esker.ledger.runs import latest_runs
from esker.pipeline.idle import asks_only_its_table, nothing_new
from esker.pipeline.plan import open_reader, plan_pipeline
from esker.pipeline.planned import NOTHING_NEW, PipelinePlan
from esker.pipeline.run import run_pipeline
from esker.project.contract.model import Audit, Bound
from tests.cli.terminal import environment
from tests.contracts.folder import MakeFolder, contract, contract_folder
from tests.folder import Folder
from tests.no_java import WATCHED, FakeJava

pytestmark = pytest.mark.spark

COLUMNS = ["id", "day", "note"]
ROWS = [(1, "2026-01-01", "a"), (2, "2026-01-01", "b"), (3, "2026-01-02", "c")]
KEYED: dict[str, Any] = {"mode": "upsert", "key": ["id"]}
CONTRACT = contract(
    """
    - {name: id, logicalType: integer, required: true}
    - name: amount
      logicalType: number
      physicalType: decimal(12,2)
      logicalTypeOptions: {minimum: 0}
    - name: day
      logicalType: date
      partitioned: true
    """,
    "- {metric: rowCount, mustBeGreaterThan: 0, name: filled}",
)


def without_spark(folder: Folder, name: str = "sales") -> PipelinePlan | None:
    """Return the plan of a run that has nothing to do; None where Spark has to start."""
    opened = folder.open()
    return nothing_new(opened.project, opened.state, name)


def with_spark(folder: Folder, name: str = "sales") -> PipelinePlan:
    opened = folder.open()
    with closing(open_reader(opened.engine, name)) as source:
        return plan_pipeline(opened.engine, opened.state, name, source)


def told(result: Any) -> dict[str, Any]:
    """Return what a result says, without what is another one each time."""
    return {key: value for key, value in result.as_json().items() if key not in ("run_id", "seconds")}


def assert_idle(folder: Folder, name: str = "sales") -> None:
    """See that a run needs no Spark, and ends as one with Spark does."""
    found = without_spark(folder, name)
    assert found is not None
    assert found == with_spark(folder, name)
    opened = folder.open()
    expected = run_pipeline(opened.project, opened._start, opened.state, name)
    events: list[Any] = []
    other = folder.open()
    result = other.run(name, events.append)
    assert not other._is_started
    assert told(result) == told(expected)
    assert events == [Reached(name, Step.PLANNED, "nothing to do"), Reached(name, Step.FINISHED, "succeeded")]
    newest, before = latest_runs(other.state, "shop", name, limit=2)
    assert (newest.run_id, newest.status, newest.error) == (result.run_id, "succeeded", None)
    assert newest.result is not None
    assert newest.result.keys() == (before.result or {}).keys()


def loaded(folder: Folder) -> Folder:
    folder.write_csv("landing/a.csv", COLUMNS, ROWS)
    folder.run()
    return folder


KINDS: dict[str, dict[str, Any]] = {
    "append": {},
    "small lane": KEYED | {"lane": "small"},
    "large lane": KEYED | {"lane": "large", "order_by": "day"},
    "hard deletes": KEYED | {"deletes": "hard", "delete_when": "note = 'c'"},
    "no change log": KEYED | {"changes": "off"},
    "history": KEYED | {"mode": "scd2"},
    "replace": {"mode": "replace"},
    "comparison": KEYED | {"mode": "sync"},
    "partitions": {"mode": "replace_partitions", "partition_by": ["day"]},
    "layout": {
        "partition_by": ["bucket(4, id)", "day(at)"],
        "sort_by": ["note desc", "id"],
        "columns": {"at": "timestamp", "price": "decimal(9,2)", "id": {"type": "bigint", "required": True}},
        "properties": {"write.target-file-size-bytes": "1048576"},
        "format_version": 3,
    },
    "transform": {"transform": "SELECT id, upper(note) AS note FROM input"},
    "frozen": {"columns": {"id": "bigint", "day": "date", "note": "string"}, "evolution": "freeze"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_says_what_spark_says(make_folder: MakeFolder, kind: str) -> None:
    """In every mode and layout: notes, position, changeset, history and events are the same."""
    folder = loaded(make_folder(pipelines={"sales": Folder.files_pipeline(**KINDS[kind])}))
    assert_idle(folder)
    folder.write_csv("landing/b.csv", COLUMNS, [(4, "2026-01-03", "d"), (1, "2026-01-01", "e")])
    assert without_spark(folder) is None
    assert folder.run().rows.read > 0
    assert_idle(folder)


@pytest.mark.parametrize("catalog", [{"type": "hadoop", "warehouse": "wh"}, {"warehouse": "a place"}])
def test_of_other_catalogs(make_folder: MakeFolder, catalog: dict[str, Any]) -> None:
    folder = make_folder(catalog={"type": "sqlite", **catalog}, system_namespace="own.tables")
    assert_idle(loaded(folder))


def test_of_a_contract(make_folder: MakeFolder) -> None:
    """What Spark said of rules counts for as long as the contract and the columns are the same."""
    folder = contract_folder(make_folder, CONTRACT)
    folder.write_csv("landing/a.csv", ["id", "amount", "day"], [(1, "1.00", "2026-01-01"), (2, "-1", "")])
    assert folder.run().rows.quarantined == 1
    assert_idle(folder)
    folder.write("contracts/sales.odcs.yaml", CONTRACT.replace("minimum: 0", "minimum: 1"))
    assert without_spark(folder) is None
    folder.run()
    assert_idle(folder)
    wrong = CONTRACT.replace(
        "- {metric: rowCount, mustBeGreaterThan: 0, name: filled}",
        '- {type: sql, query: "SELECT nosuch FROM {table}", mustBe: 0, name: wrong}',
    )
    folder.write("contracts/sales.odcs.yaml", wrong)
    for _ in range(2):
        assert without_spark(folder) is None
        with pytest.raises(Exception, match="nosuch"):
            folder.run()


def test_a_rule_that_refers_to_a_table(make_folder: MakeFolder) -> None:
    """The table that a rule refers to is looked for each time."""
    text = contract(
        """
        - name: id
          logicalType: integer
          relationships:
            - {type: foreignKey, to: shop.customers.id}
        """
    )
    folder = contract_folder(make_folder, text)
    engine = folder.open().engine
    engine.open_catalog("lake")
    engine.spark.sql("CREATE NAMESPACE lake.shop")
    engine.spark.sql("CREATE TABLE lake.shop.customers (id bigint) USING iceberg")
    engine.spark.sql("INSERT INTO lake.shop.customers VALUES (1)")
    folder.write_csv("landing/a.csv", ["id"], [(1,)])
    folder.run()
    assert_idle(folder)
    engine.spark.sql("ALTER TABLE lake.shop.customers RENAME COLUMN id TO number")
    assert without_spark(folder) is None
    with pytest.raises(UnknownReference):
        folder.run()


Disturb = Callable[[Folder], None]


def sql(folder: Folder, *statements: str) -> None:
    engine = folder.open().engine
    engine.open_catalog("lake")
    for statement in statements:
        engine.spark.sql(statement).collect()


def change_declaration(folder: Folder) -> None:
    folder.change(columns={"colour": "string"})


def lose_state(folder: Folder) -> None:
    folder.lose_state()


def another_version(folder: Folder) -> None:
    """Stand for a digest of another version of Esker or Spark."""
    with folder.open().state.begin() as connection:
        connection.execute(state_module.checked.update().values(digest="0" * 64))


def spoil_metadata(folder: Folder) -> None:
    for path in folder.path.glob(".esker/warehouse/shop/sales/metadata/*.metadata.json"):
        path.write_text(path.read_text()[:-10])


def change_spark(folder: Folder) -> None:
    folder.document["spark"] = {**folder.document["spark"], "driver_memory": "3g"}
    folder.save()


def void(_: object) -> None:
    """Leave out what something returned."""


WORK: dict[str, Disturb] = {
    "a file": lambda folder: void(folder.write_csv("landing/b.csv", COLUMNS, [(9, "2026-01-01", "z")])),
    "a file in a hurry": lambda folder: void(folder.write("landing/b.csv", "")),
    "a declared column": change_declaration,
    "a property": lambda folder: folder.change(properties={"owner": "shop"}),
    "a partitioning": lambda folder: folder.change(partition_by=["day"]),
    "another name of the source": lambda folder: folder.change(
        source={"type": "files", "path": "landing/**/*.csv", "format": "csv"}
    ),
    "a lost history": lose_state,
    "another version": another_version,
    "a column that others dropped": lambda folder: sql(
        folder, "ALTER TABLE lake.shop.sales DROP COLUMN note"
    ),
    "a column that others made": lambda folder: sql(folder, "ALTER TABLE lake.shop.sales ADD COLUMN z int"),
    "settings of Spark": change_spark,
}


@pytest.mark.parametrize("work", WORK)
def test_spark_starts_for_work(folder: Folder, work: str) -> None:
    """Whatever there is to do or to check, Spark is asked."""
    loaded(folder)
    assert without_spark(folder) is not None
    WORK[work](folder)
    assert without_spark(folder) is None


def test_a_changed_file_is_refused_as_ever(folder: Folder) -> None:
    loaded(folder)
    assert without_spark(folder) is not None  # and remembered
    folder.write_csv("landing/a.csv", COLUMNS, [*ROWS, (4, "2026-01-01", "d")])
    assert without_spark(folder) is None
    with pytest.raises(FileChanged):
        folder.run()


@pytest.mark.parametrize("on_changed", ["ignore", "reload"])
def test_a_changed_file_that_may_change(make_folder: MakeFolder, on_changed: str) -> None:
    source = {"on_changed": on_changed}
    folder = loaded(make_folder(pipelines={"sales": Folder.files_pipeline(source=source)}))
    folder.write_csv("landing/a.csv", COLUMNS, [*ROWS, (4, "2026-01-01", "d")])
    assert (without_spark(folder) is None) == (on_changed == "reload")
    folder.run()
    assert_idle(folder)


def test_a_file_that_went_away(make_folder: MakeFolder) -> None:
    """Whole copies follow the files; what was added stays added."""
    for mode, is_idle in (("append", True), ("replace", False)):
        folder = loaded(make_folder(mode, pipelines={"sales": Folder.files_pipeline(mode=mode)}))
        folder.write_csv("landing/b.csv", COLUMNS, [(9, "2026-01-01", "z")])
        folder.run()
        (folder.path / "landing/b.csv").unlink()
        assert (without_spark(folder) is not None) == is_idle
        folder.run()
        assert_idle(folder)
    for file in folder.path.glob("landing/*"):
        file.unlink()
    (folder.path / "landing").rmdir()
    assert without_spark(folder) is None


def test_rows_of_others_are_told(make_folder: MakeFolder) -> None:
    """What others committed is told in the words of a run with Spark; a rollback stops both."""
    folder = loaded(make_folder(pipelines={"sales": Folder.files_pipeline(**KEYED)}))
    columns = "(id, day, note)"
    sql(folder, f"INSERT INTO lake.shop.sales {columns} VALUES (7, date '2026-01-01', 'x')")
    assert_idle(folder)
    found = without_spark(folder)
    assert found is not None
    assert any("others changed the table" in note for note in found.notes)
    sql(
        folder,
        "CALL lake.system.rewrite_data_files(table => 'shop.sales', options => map('rewrite-all', 'true'))",
    )
    assert_idle(folder)
    folder.write_csv("landing/b.csv", COLUMNS, [(8, "2026-01-03", "d")])
    folder.run()
    assert_idle(folder)
    snapshots = [
        row.snapshot_id
        for row in folder.open()
        .engine.spark.sql("SELECT snapshot_id FROM lake.shop.sales.snapshots ORDER BY committed_at")
        .collect()
    ]
    sql(folder, f"CALL lake.system.rollback_to_snapshot('shop.sales', {snapshots[0]})")
    assert without_spark(folder) is None
    with pytest.raises(TableRewound):
        folder.run()


def test_expired_snapshots_of_others(folder: Folder) -> None:
    """Where the line to the last publish is cut, Java looks into earlier metadata."""
    loaded(folder)
    for number in range(3):
        sql(folder, f"INSERT INTO lake.shop.sales VALUES ({number}, date '2026-01-01', 'x')")
    sql(
        folder,
        "CALL lake.system.expire_snapshots(table => 'shop.sales', older_than => now(), retain_last => 1)",
    )
    assert without_spark(folder) is None
    assert NOTHING_NEW in folder.run().notes


def test_a_damaged_ledger_is_spark_to_tell(folder: Folder) -> None:
    loaded(folder)
    sql(folder, "ALTER TABLE lake.shop.sales UNSET TBLPROPERTIES ('esker.ledger.sales')")
    assert without_spark(folder) is None
    with pytest.raises(LedgerMissing):
        folder.run()
    sql(folder, "ALTER TABLE lake.shop.sales SET TBLPROPERTIES ('esker.ledger.sales' = '{broken')")
    assert without_spark(folder) is None


def test_damaged_metadata_is_spark_to_tell(folder: Folder) -> None:
    loaded(folder)
    spoil_metadata(folder)
    assert without_spark(folder) is None


@pytest.mark.parametrize("is_remembered", [False, True])
def test_a_record_that_is_not_there(folder: Folder, is_remembered: bool) -> None:
    """Also right after a look that found nothing new, and remembers that."""
    loaded(folder)
    for _ in range(2 * is_remembered):
        assert without_spark(folder) is not None
    sql(folder, "DROP TABLE lake.shop.sales__files")
    assert without_spark(folder) is None


def test_what_is_owed_is_paid(make_folder: MakeFolder) -> None:
    """A run that was stopped before the change log is finished by the next one, with Spark."""
    folder = make_folder(pipelines={"sales": Folder.files_pipeline(**KEYED)})
    folder.write_csv("landing/a.csv", COLUMNS, ROWS)

    def stop(event: Any) -> None:
        if isinstance(event, Reached) and event.step is Step.BEFORE_LOG:
            raise KeyboardInterrupt

    with pytest.raises(BaseException, match="interrupted"):
        folder.run(listen=stop)
    assert without_spark(folder) is None
    folder.run()
    assert len(folder.rows("shop.sales__changes")) == 3
    assert_idle(folder)


def test_a_log_that_was_rolled_back_or_is_gone(make_folder: MakeFolder) -> None:
    folder = loaded(make_folder(pipelines={"sales": Folder.files_pipeline(**KEYED)}))
    folder.write_csv("landing/b.csv", COLUMNS, [(8, "2026-01-03", "d")])
    folder.run()
    assert_idle(folder)
    log = "lake.shop.sales__changes"
    first = (
        folder.open()
        .engine.spark.sql(f"SELECT min_by(snapshot_id, committed_at) FROM {log}.snapshots")
        .first()
    )
    assert first is not None
    sql(folder, f"CALL lake.system.rollback_to_snapshot('shop.sales__changes', {first[0]})")
    assert without_spark(folder) is None
    with pytest.raises(SideTableForeign):
        folder.run()
    sql(folder, f"DROP TABLE {log}")
    assert without_spark(folder) is None


def test_a_held_batch_is_met_again(make_folder: MakeFolder) -> None:
    """What waits for a person is found again by each run."""
    guarded = Folder.files_pipeline(guard={"max_rows": 3})
    folder = loaded(make_folder(pipelines={"sales": guarded}))
    folder.write_csv("landing/b.csv", COLUMNS, [(n, "2026-01-01", "x") for n in range(10, 20)])
    for _ in range(2):
        assert without_spark(folder) is None
        with pytest.raises(Exception, match="holds a batch"):
            folder.run()
    opened = folder.open()
    opened.reject("sales")
    assert_idle(folder)


@pytest.mark.parametrize(
    ("query", "is_own"),
    [
        ("SELECT count(*) FROM {table} WHERE id IS NULL", True),
        ("select max(x) from {table} t join {table} u on t.id = u.id", True),
        ("SELECT count(*) FROM {table}, other", False),
        ("SELECT count(*) FROM {table} JOIN other USING (id)", False),
        ("SELECT (SELECT count(*) FROM other) FROM {table}", False),
        ("SELECT count(*) FROM\nshop.other", False),
        ("SELECT extract(year FROM day) FROM {table}", False),
    ],
)
def test_queries_that_ask_another_table(query: str, is_own: bool) -> None:
    """When in doubt, a query may ask another table, and Spark is asked about it."""
    assert asks_only_its_table(Audit("rule", "sql", Bound("=", 0), query)) == is_own


def watched_run(folder: Folder, fake: FakeJava) -> subprocess.CompletedProcess[str]:
    """Run a project in a process that reports what it loads and starts."""
    return subprocess.run(
        [sys.executable, "-c", WATCHED, "run", "--json", "--project", str(folder.path)],
        env=environment(fake.environment),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.process
def test_no_java_is_started(make_folder: MakeFolder, tmp_path: Path) -> None:
    """Neither Java nor PySpark nor PyIceberg is loaded, and no process is started at all."""
    folder = loaded(make_folder(pipelines={"sales": Folder.files_pipeline(**KEYED)}))
    fake = FakeJava(tmp_path / "java")
    # Arrow looks for pandas when the record of loaded files is read, which the first run does.
    for heavy in (["pandas"], []):
        ended = watched_run(folder, fake)
        assert ended.returncode == 0, ended.stderr
        document, watched = json.loads(ended.stdout), json.loads(ended.stderr.splitlines()[-1])
        [result] = document["pipelines"]
        assert (result["status"], result["notes"], result["changeset"]) == ("succeeded", [NOTHING_NEW], 1)
        assert watched == {"started": [], "heavy": heavy}
        assert not fake.was_started


@pytest.mark.process
def test_java_is_seen_where_it_starts(make_folder: MakeFolder, tmp_path: Path) -> None:
    """The test above would see it."""
    folder = loaded(make_folder())
    folder.write_csv("landing/b.csv", COLUMNS, ROWS)
    fake = FakeJava(tmp_path / "java")
    ended = watched_run(folder, fake)
    watched = json.loads(ended.stderr.splitlines()[-1])
    assert fake.was_started
    assert watched["started"]
    assert "pyspark" in watched["heavy"]
