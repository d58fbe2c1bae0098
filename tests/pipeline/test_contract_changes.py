"""What a contract says of a table's layout can change later: no file is rewritten, and plans tell it."""

from __future__ import annotations

from pathlib import Path

import pytest

from esker.engine.iceberg.table import Table
from esker.errors import ChangeNotApplied
from esker.pipeline.plan import PipelinePlan
from esker.pipeline.table_changes import IdentifyBy, UpgradeTable
from tests.contracts.folder import MakeFolder, change_contract, contract, contract_folder
from tests.folder import Folder

pytestmark = pytest.mark.spark

KEY = "- {name: id, logicalType: integer, required: true, primaryKey: true}"
CODE = "- {name: code, logicalType: string, required: true}"
NO_KEY = KEY.replace(", primaryKey: true", "")
CODE_KEY = CODE.replace("}", ", primaryKey: true}")


def project(make_folder: MakeFolder, *options: str, **keys: str) -> Folder:
    listed = "".join(f"      - {{property: {option}}}\n" for option in options or ("owner, value: us",))
    text = contract(f"{KEY}\n{CODE}").replace(
        "    properties:", f"    customProperties:\n{listed}    properties:"
    )
    folder = contract_folder(make_folder, text, **keys)
    folder.write_csv("landing/a.csv", ["id", "code"], [(1, "a"), (2, "b")])
    folder.run()
    return folder


def files(folder: Folder) -> dict[Path, int]:
    """Return the table's data files, and when each was written."""
    found = (folder.path / ".esker/warehouse/shop/sales/data").rglob("*.*")
    return {file: file.stat().st_mtime_ns for file in found if not file.name.startswith(".")}


def planned(folder: Folder) -> PipelinePlan:
    [plan] = folder.open().plan(["sales"])
    if plan.error is not None:
        raise plan.error
    return plan


def stored(folder: Folder) -> Table:
    return folder.open().show("shop.sales").table


def test_another_identifier(make_folder: MakeFolder) -> None:
    """A plan calls it breaking: a run does not make it by itself."""
    folder = project(make_folder, mode="append")
    before = files(folder)
    change_contract(folder, KEY, NO_KEY)
    change_contract(folder, CODE, CODE_KEY)
    plan = planned(folder)
    assert [(str(each.what), each.breaking is not None) for each in plan.differences] == [
        ("rows are identified by code, until now by id", True)
    ]
    assert [type(change) for change in plan.changes] == [IdentifyBy]
    folder.write_csv("landing/b.csv", ["id", "code"], [(3, "c")])
    with pytest.raises(ChangeNotApplied) as caught:
        folder.run()
    assert "identify rows of table shop.sales by code" in caught.value.reason
    assert stored(folder).identifier == ("id",)
    folder.open().apply([planned(folder)])
    assert stored(folder).identifier == ("code",)
    assert files(folder) == before
    assert folder.run().rows.inserted == 1
    assert planned(folder).is_empty


def test_an_identifier_that_iceberg_cannot_have(make_folder: MakeFolder) -> None:
    """A table that has rows cannot begin to require a column: it keeps its identifier, and that is told."""
    folder = project(make_folder, mode="append")
    change_contract(folder, CODE, CODE.replace(", required: true", ""))
    folder.open().apply([planned(folder)])
    change_contract(folder, KEY, NO_KEY)
    change_contract(folder, CODE.replace(", required: true", ""), CODE_KEY)
    plan = planned(folder)
    assert plan.changes == ()
    assert any(str(each).startswith("rows are not identified by code: ") for each in plan.differences)
    assert stored(folder).identifier == ("id",)


def test_other_properties_and_another_format(make_folder: MakeFolder) -> None:
    """New files have them; old ones stay, and are read beside the new."""
    folder = project(make_folder, "compression, value: gzip")
    before = files(folder)
    assert planned(folder).changes == ()
    change_contract(folder, "compression, value: gzip", "compression, value: snappy")
    [change] = planned(folder).changes
    assert str(change) == "set properties of table shop.sales: write.parquet.compression-codec = snappy"
    folder.open().apply([planned(folder)])
    assert stored(folder).properties["write.parquet.compression-codec"] == "snappy"
    assert files(folder) == before

    change_contract(folder, "{property: compression, value: snappy}", "{property: format, value: avro}")
    plan = planned(folder)
    assert [str(change) for change in plan.changes] == [
        "set properties of table shop.sales: write.format.default = avro",
        "set properties of table shop.sales: write.parquet.compression-codec = zstd",
    ]
    told = "new files become avro, until now parquet; those that are there stay"
    assert [str(each) for each in plan.differences] == [told]
    folder.write_csv("landing/b.csv", ["id", "code"], [(3, "c")])
    folder.run()
    assert files(folder).items() >= before.items()
    assert {file.suffix for file in files(folder).keys() - before.keys()} == {".avro"}
    assert folder.rows("shop.sales", "id") == [(1,), (2,), (3,)]
    assert planned(folder).is_empty


def test_another_format_version(make_folder: MakeFolder) -> None:
    """A table is upgraded by `plan --apply` only, and never goes back."""
    folder = project(make_folder, "formatVersion, value: 2", mode="upsert")
    folder.write_csv("landing/b.csv", ["id", "code"], [(1, "A")])
    folder.run()
    before = files(folder)
    change_contract(folder, "formatVersion, value: 2", "formatVersion, value: 3")
    plan = planned(folder)
    assert [type(change) for change in plan.changes] == [UpgradeTable]
    assert [each.breaking is not None for each in plan.differences] == [True]
    folder.write_csv("landing/c.csv", ["id", "code"], [(1, "x"), (2, "y")])
    with pytest.raises(ChangeNotApplied) as caught:
        folder.run()
    assert "upgrade table shop.sales to format version 3" in caught.value.reason
    folder.open().apply([planned(folder)])
    assert stored(folder).format_version == 3
    assert files(folder) == before
    assert folder.run().rows.updated == 2  # deletes of version 2 and 3 together
    assert folder.rows("shop.sales", "id", "code") == [(1, "x"), (2, "y")]

    change_contract(folder, "formatVersion, value: 3", "formatVersion, value: 2")
    plan = planned(folder)
    assert plan.changes == ()
    told = "format version 2 is declared, and the table has 3: no table goes back, and it stays as it is"
    assert [str(each) for each in plan.differences] == [told]
    assert folder.run().status == "succeeded"
