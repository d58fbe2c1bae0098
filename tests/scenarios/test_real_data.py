"""Public data with its real mess: an inferred contract, and the same source after it has drifted."""

from __future__ import annotations

import csv
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from esker.errors import ColumnsFrozen
from tests.contracts.folder import MakeFolder
from tests.folder import Folder

pytestmark = pytest.mark.spark


def packaged(package: str, *parts: str) -> Path:
    """Return a data file that comes inside a Python package."""
    found = files(package)
    for part in parts:
        found = found / part
    return Path(str(found))


def penguins() -> tuple[list[str], list[dict[str, str]]]:
    with packaged("palmerpenguins", "data", "penguins-raw.csv").open(encoding="utf-8") as stream:
        reader = csv.DictReader(stream)
        rows = list(reader)
        return list(reader.fieldnames or ()), rows


def write(folder: Folder, name: str, header: list[str], rows: list[dict[str, Any]]) -> None:
    folder.write_csv(f"landing/{name}.csv", header, [[row.get(key, "") for key in header] for row in rows])


def activate(folder: Folder) -> Path:
    path = folder.path / "contracts/sales.odcs.yaml"
    path.write_text(path.read_text().replace("status: draft", "status: active"))
    folder.change(contract="contracts/sales.odcs.yaml")
    return path


def test_penguins(make_folder: MakeFolder) -> None:
    """Names with blanks and brackets, NA for nothing; then other values, types and columns."""
    header, rows = penguins()
    source = {"type": "files", "path": "landing/*.csv", "format": "csv", "null_value": "NA"}
    folder = make_folder(pipelines={"sales": {"source": source, "table": "shop.sales"}})
    write(folder, "a", header, rows)
    found = folder.open().infer_contract("sales")
    seen = {each.column.name: each for each in found.columns}
    assert (found.rows, len(seen)) == (344, 17)
    assert str(seen["Body Mass (g)"].column.type) == "bigint"
    assert str(seen["Culmen Length (mm)"].column.type) == "double"
    assert str(seen["Date Egg"].column.type) == "date"
    assert not seen["Sex"].is_required
    assert set(seen["Island"].values) == {"Biscoe", "Dream", "Torgersen"}
    assert not any(each.is_unique for each in found.columns)  # individuals were seen more than once
    # A guess by the name alone: nobody told that these are birds.
    assert [each.column.name for each in found.columns if each.personal] == ["Sex"]
    path = activate(folder)
    first = folder.run()
    assert (first.rows.read, first.rows.inserted, first.rows.quarantined) == (344, 344, 0)

    drifted = [dict(row) for row in rows[:20]]
    drifted[3]["Body Mass (g)"] = "heavy"
    drifted[5]["Date Egg"] = "11/16/2007"
    drifted[7]["studyName"] = "NA"
    write(folder, "b", header, drifted)
    second = folder.run()
    assert (second.rows.read, second.rows.inserted, second.rows.quarantined) == (20, 17, 3)
    waiting = {each.rules: each.rows for each in folder.open().quarantined()}
    assert waiting == {("type",): 2, ("required",): 1}

    for row in drifted:
        row["Observer"] = "K. Gorman"
    write(folder, "c", [*header, "Observer"], drifted[:3])
    with pytest.raises(ColumnsFrozen, match="Observer"):
        folder.run()
    path.write_text(path.read_text().rstrip() + "\n      - {name: Observer, logicalType: string}\n")
    [plan] = folder.open().plan(["sales"])
    assert [change.as_json()["change"] for change in plan.changes] == ["add_columns"]
    folder.open().apply([plan])
    third = folder.run()
    assert (third.rows.inserted, third.rows.quarantined) == (3, 0)
    assert folder.open().table("shop.sales").count() == 344 + 17 + 3


def test_people(make_folder: MakeFolder) -> None:
    """Personal data is found in a table of people, and its values stay out of the contract."""
    folder = make_folder()
    text = packaged("vega_datasets", "_data", "la-riots.csv").read_text(encoding="utf-8")
    folder.write("landing/a.csv", text)
    found = folder.open().infer_contract("sales")
    personal = {each.column.name for each in found.columns if each.personal}
    labelled = {"first_name", "last_name", "age", "gender", "race", "address", "longitude", "latitude"}
    wrong = personal - labelled
    print(f"personal data: {len(personal & labelled)} of {len(labelled)} found, wrongly: {sorted(wrong)}")
    assert len(personal & labelled) >= 7
    assert not wrong
    contract = (folder.path / "contracts/sales.odcs.yaml").read_text()
    assert "Aguilar" not in contract
    activate(folder)
    result = folder.run()
    assert (result.rows.quarantined, result.rows.inserted) == (0, found.rows)
