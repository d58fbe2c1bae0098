"""dlt resources as sources: what they may be, how far they are, and what becomes of their mistakes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import dlt
import pytest

from esker.engine.iceberg.table import TableId
from esker.errors import FunctionFailed, PositionLost, ResourceNotFound
from esker.ledger import large_positions, upkeep
from tests.folder import Folder

pytestmark = pytest.mark.spark
MakeFolder = Callable[..., Folder]


def project(make_folder: MakeFolder, code: str, name: str = "orders", **keys: Any) -> Folder:
    source = {"type": "dlt", "resource": f"sources/shop.py:{name}", **keys.pop("source", {})}
    pipeline = {"source": source, "table": "shop.orders", "mode": "append", **keys}
    folder = make_folder(pipelines={"orders": pipeline})
    write(folder, code)
    return folder


def write(folder: Folder, code: str) -> None:
    folder.write("sources/shop.py", "import dlt\n" + textwrap.dedent(code))


NEWEST_FIRST = """
    @dlt.resource(primary_key="id")
    def orders(upto={upto}, fails_at=None, at=dlt.sources.incremental("at", initial_value=0)):
        for number in range(upto, 0, -1):
            if number < at.last_value and number < at.start_value:
                return
            if number == fails_at:
                raise ConnectionError("the shop does not answer")
            yield {{"id": number, "at": number // 2}}
"""


def test_the_state_comes_with_the_rows(make_folder: MakeFolder) -> None:
    """Rows come newest first: a state that was kept ahead of them would lose all that follow a failure."""
    folder = project(make_folder, NEWEST_FIRST.format(upto=9), source={"arguments": {"fails_at": 4}})
    with pytest.raises(FunctionFailed) as raised:
        folder.run("orders")
    assert raised.value.reason.startswith("ConnectionError: the shop does not answer (shop.py, line ")
    folder.change("orders", source={"type": "dlt", "resource": "sources/shop.py:orders"})
    first = folder.run("orders")
    assert (first.rows.inserted, first.batches) == (9, 1)
    assert folder.run("orders").rows.read == 0
    write(folder, NEWEST_FIRST.format(upto=12))
    folder.lose_state()
    more = folder.run("orders")
    assert more.rows.inserted == 3
    assert '"last_value":6' in more.position["to"]["reached"]  # type: ignore[index]
    assert sorted(folder.rows("shop.orders", "id")) == [(number,) for number in range(1, 13)]


def test_a_large_state_stands_beside_the_table(make_folder: MakeFolder) -> None:
    """dlt keeps a hash of every row with the last value of the cursor: more than a ledger may hold."""
    code = """
        @dlt.resource(primary_key="id")
        def orders(day=dlt.sources.incremental("day", initial_value="2026-11-01")):
            yield [{{"id": number, "day": "2026-11-03"}} for number in range({upto})]
    """
    folder = project(make_folder, code.format(upto=400))
    assert folder.run("orders").rows.inserted == 400
    assert len(folder.rows("shop.orders__positions", "position")[0][0]) > 4000
    assert folder.run("orders").rows.read == 0
    write(folder, code.format(upto=402))
    assert folder.run("orders").rows.inserted == 2
    assert len(folder.rows("shop.orders")) == 402


def test_large_states_are_not_kept_for_ever(make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """When there are many, old ones go; never that of the ledger, nor one of another pipeline."""
    code = """
        @dlt.resource(primary_key="id")
        def orders(day=dlt.sources.incremental("day", initial_value="2026-11-01")):
            yield [{{"id": number, "day": "2026-11-03"}} for number in range({upto})]
    """
    folder = project(make_folder, code.format(upto=200))
    pipelines = folder.document["pipelines"]
    pipelines["others"] = pipelines["orders"]
    folder.save()
    folder.run("others")
    for upto in (201, 202, 203):
        write(folder, code.format(upto=upto))
        folder.run("orders")
    kept = [row[0] for row in folder.rows("shop.orders__positions", "pipeline")]
    assert kept == ["orders"] * 3 + ["others"]
    monkeypatch.setattr(large_positions, "_MANY", 4)
    monkeypatch.setattr(large_positions, "_KEPT", timedelta(0))
    monkeypatch.setattr(upkeep, "_KEPT_SNAPSHOTS", 1)
    monkeypatch.setattr(upkeep, "KEPT_FOR", timedelta(0))
    write(folder, code.format(upto=204))
    assert folder.run("orders").rows.inserted == 1
    # That of the ledger, and the one before it, to which the table may go back.
    kept = folder.rows("shop.orders__positions", "pipeline", "id")
    assert [row[0] for row in kept] == ["orders", "orders", "others"]
    assert folder.open().table("shop.orders__positions.snapshots").count() == 1
    folder.open().read("orders")
    assert folder.rows("shop.orders__positions", "pipeline", "id") == kept
    folder.lose_state()
    for name, read in (("orders", 0), ("others", 4)):
        assert folder.run(name).rows.read == read


def test_a_large_state_that_is_lost(make_folder: MakeFolder) -> None:
    """A position that the ledger names and that is not there is never taken for a beginning."""
    engine = make_folder().open().engine
    engine.open_catalog("lake")
    engine.spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    states = large_positions.LargePositions(engine, TableId("lake", "shop.orders__positions"), "orders")
    with pytest.raises(PositionLost, match="orders__positions"):
        states.read("one")
    states.record("one", "[1]", "run")
    assert states.read("one") == "[1]"
    with pytest.raises(PositionLost):
        states.read("two")


def test_a_large_state_that_the_ledger_names_stays(
    make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that publishes nothing leaves the ledger as it is, and what it names."""
    code = """
        @dlt.resource(primary_key="id")
        def orders():
            state = dlt.current.resource_state()
            state["run"] = state.get("run", 0) + 1
            state["known"] = [f"{state['run']} of {number}" for number in range(500)]
            yield [{"id": 1, "name": "the same"}]
    """
    monkeypatch.setattr(large_positions, "_MANY", 1)
    monkeypatch.setattr(large_positions, "_KEPT", timedelta(0))
    folder = project(make_folder, code, mode="upsert", key=["id"])
    assert folder.run("orders").rows.inserted == 1
    for _ in range(2):
        assert folder.run("orders").rows.unchanged == 1
    folder.lose_state()
    assert folder.run("orders").rows.unchanged == 1


MANY = """
    import pyarrow as pa
    from pydantic import BaseModel

    class Order(BaseModel):
        id: int
        tags: list[str]

    @dlt.resource
    def numbers(upto=2):
        yield list(range(1, upto + 1))

    @dlt.transformer(data_from=numbers)
    def details(page):
        for number in page:
            yield {"id": number, "customer": {"name": f"c{number}", "phones": ["1", "2"]}}

    @dlt.resource
    def arrow():
        yield pa.table({"id": [7, 8]})

    @dlt.resource
    def models():
        yield Order(id=9, tags=["a"])

    @dlt.source
    def shop(upto=3):
        return numbers(upto) | details, arrow, models

    def made(upto):
        return shop(upto).with_resources("details")

    both = 5
    def nothing():
        return [1]
"""


def test_resources_of_all_forms(make_folder: MakeFolder) -> None:
    """What is nested stays nested. An active pipeline, which has a state of its own, changes nothing."""
    folder = project(make_folder, MANY, mode="replace")
    active = dlt.pipeline("other", pipelines_dir=str(folder.path / "dlt"))
    try:
        found: dict[str, Any] = {}
        forms: dict[str, dict[str, Any]] = {
            "details": {},
            "shop": {"select": "details", "arguments": {"upto": 1}},
            "made": {"arguments": {"upto": 1}},
            "arrow": {},
            "models": {},
        }
        for name, keys in forms.items():
            folder.change("orders", source={"type": "dlt", "resource": f"sources/shop.py:{name}", **keys})
            found[name] = folder.open().read("orders").to_pylist()
    finally:
        active.deactivate()
    first = {"id": 1, "customer": {"name": "c1", "phones": ["1", "2"]}}
    assert found["details"] == [first, {"id": 2, "customer": {"name": "c2", "phones": ["1", "2"]}}]
    assert found["shop"] == found["made"] == [first]
    assert found["arrow"] == [{"id": 7}, {"id": 8}]
    assert found["models"] == [{"id": 9, "tags": ["a"]}]


@pytest.mark.parametrize(
    ("name", "keys", "why"),
    [
        ("shop", {}, "has several: details, arrow, models. Name one of them with select:."),
        ("shop", {"select": "none"}, "has no resource none"),
        ("both", {}, "It is a int"),
        ("nothing", {}, "It returns a list"),
        ("missing", {}, "There is no missing"),
    ],
)
def test_resources_that_are_not_there(
    make_folder: MakeFolder, name: str, keys: dict[str, Any], why: str
) -> None:
    folder = project(make_folder, MANY, name, source=keys)
    [plan] = folder.open().plan(["orders"])
    assert isinstance(plan.error, ResourceNotFound)
    assert why in plan.error.reason


def test_batches_need_rows_in_order(make_folder: MakeFolder) -> None:
    folder = project(make_folder, NEWEST_FIRST.format(upto=9), source={"rows_per_batch": 2})
    with pytest.raises(FunctionFailed) as raised:
        folder.run("orders")
    assert 'row_order="asc"' in raised.value.reason
    assert "Leave rows_per_batch: out" in raised.value.remedy


def test_a_whole_is_never_only_what_is_new(make_folder: MakeFolder) -> None:
    folder = project(make_folder, NEWEST_FIRST.format(upto=3), mode="replace", key=["id"])
    assert folder.run("orders").rows.inserted == 3
    again = folder.run("orders")
    assert (again.rows.read, again.rows.unchanged) == (3, 3)
    assert again.position["to"] is None


def test_settings_are_found_by_the_name_of_the_file(
    make_folder: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As dlt finds them when the file is a module."""
    monkeypatch.setenv("SOURCES__SHOP__ORDERS__TOKEN", "from the environment")
    code = """
        @dlt.resource
        def orders(token: str = dlt.secrets.value):
            yield {"id": 1, "token": token}
    """
    folder = project(make_folder, code)
    assert folder.open().read("orders").to_pylist() == [{"id": 1, "token": "from the environment"}]
