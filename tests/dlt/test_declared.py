"""Tables of dlt as pipelines, without Spark: what is refused, and under which names loads are remembered."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from esker.dlt.declared import Merge, declare, pipeline_name
from esker.dlt.rows import PackageRows
from esker.errors import DltRefused, LoadForgotten
from esker.project import Project


def table(
    name: str = "orders", columns: dict[str, Any] | None = None, hints: dict[str, Any] | None = None
) -> Any:
    known = {"id": {"name": "id", "data_type": "bigint", "primary_key": True, "nullable": False}}
    return {"name": name, "write_disposition": "merge", "columns": known | (columns or {}), **(hints or {})}


def declared(found: Any, strategy: str | None = "upsert", **project: Any) -> Any:
    merge = Merge.of(found, strategy) if strategy else None
    made = Project(project="shop", **project)
    return declare(made, "shop", "shop", found, merge, ["_dlt_id", "_dlt_load_id"], has_nested=False)


VALID = {
    "since": {"name": "since", "data_type": "timestamp", "x-valid-from": True},
    "until": {
        "name": "until",
        "data_type": "timestamp",
        "x-valid-to": True,
        "x-active-record-timestamp": "9999-12-31",
    },
    "hash": {"name": "hash", "data_type": "text", "x-row-version": True},
}


@pytest.mark.parametrize(
    ("found", "strategy", "why"),
    [
        (
            table(columns={"day": {"name": "day", "data_type": "date", "merge_key": True}}),
            "delete-insert",
            "merge_key",
        ),
        (table(columns=VALID), "scd2", "active_record_timestamp"),
        (table(hints={"x-merge-source-filter": "id > 1"}), "upsert", "source_filter"),
        (table(hints={"x-merge-destination-scope": "id > 1"}), "scd2", "destination_scope"),
        (table("orders__files"), "upsert", "__files"),
        (table("orders__lines", hints={"parent": "orders"}), "upsert", "no id of dlt's"),
        (table("über"), None, "pattern"),
    ],
)
def test_what_is_refused(found: Any, strategy: str | None, why: str) -> None:
    with pytest.raises(DltRefused) as refused:
        declared(found, strategy)
    assert why in refused.value.reason
    assert refused.value.remedy


def test_names_of_own_tables_are_free_elsewhere() -> None:
    assert declared(table("orders__files"), system_namespace="esker").table == "shop.orders__files"


def test_a_column_named_deleted_marks_nothing() -> None:
    """Only a hard_delete hint does."""
    found = declared(table(columns={"deleted": {"name": "deleted", "data_type": "bool"}}))
    assert found.deleted_column != "deleted"
    assert found.delete_when is None


@pytest.mark.parametrize(
    ("pipeline", "name"),
    [
        ("shop", "orders"),
        ("Shop", "orders"),
        ("shop", "x" * 80),
        ("shop", "y" * 80),
        ("ab", "c__d"),
        ("ab__c", "d"),
    ],
)
def test_names(pipeline: str, name: str) -> None:
    made = pipeline_name(pipeline, name)
    assert len(made) <= 63
    assert made == pipeline_name(pipeline, name)


def test_names_differ() -> None:
    pairs = [
        ("shop", "orders"),
        ("Shop", "orders"),
        ("shop", "x" * 80),
        ("shop", "x" * 81),
        ("a-b", "c"),
        ("a_b", "c"),
    ]
    assert len({pipeline_name(*pair) for pair in pairs}) == len(pairs)


def test_loads_that_are_remembered() -> None:
    def make() -> Any:
        raise AssertionError

    pipeline = declared(table())
    remembered = {"loads": [f"{1000 + n}.5" for n in range(50)]}
    engine: Any = None
    assert PackageRows(engine, pipeline, "1007.5", make).plan(remembered) == []
    with pytest.raises(LoadForgotten):
        PackageRows(engine, pipeline, "999.5", make).plan(remembered)


def test_dlt_is_imported_by_those_who_use_it() -> None:
    code = "import sys, esker; assert 'dlt' not in sys.modules; esker.dlt.destination"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_own_tables_without_an_underscore() -> None:
    """Some catalogs take no name that begins with one; tables of the user keep theirs."""
    made = Project(project="shop")
    for name, own_key, stored in (("_dlt_loads", ["id"], "dlt_loads"), ("_mine", [], "_mine")):
        found = declare(
            made, "shop", "shop", table(name), None, [], has_nested=False, own_key=own_key, is_plain=True
        )
        assert found.table == f"shop.{stored}"
