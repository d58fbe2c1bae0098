"""A contract is made from real data, and the data keeps to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner

from esker.cli.main import app
from esker.contracts.personal import guess
from esker.errors import ContractExists, Held, NoColumns
from esker.project.contract import read_contract
from tests.contracts.folder import MakeFolder
from tests.folder import Folder

pytestmark = pytest.mark.spark


def people(folder: Folder) -> None:
    rows = [
        (
            number,
            f"person{number}@example.org",
            ["new", "paid", "sent"][number % 3],
            f"{number / 4:.2f}",
            "" if number % 5 else "x",
        )
        for number in range(100)
    ]
    folder.write_csv("landing/a.csv", ["id", "contact", "status", "amount", "note"], rows)


def test_what_is_found(make_folder: MakeFolder) -> None:
    folder = make_folder()
    people(folder)
    found = folder.open().infer_contract("sales")
    seen = {each.column.name: each for each in found.columns}
    assert found.rows == 100
    assert {name: str(each.column.type) for name, each in seen.items()} == {
        "id": "bigint",
        "contact": "string",
        "status": "string",
        "amount": "double",
        "note": "string",
    }
    assert [name for name, each in seen.items() if each.is_required] == ["id", "contact", "status", "amount"]
    assert [name for name, each in seen.items() if each.is_unique] == ["id", "contact"]
    assert seen["status"].values == ("new", "paid", "sent")
    assert seen["contact"].personal is not None
    assert seen["contact"].personal.kind == "email"
    assert seen["status"].personal is None
    with pytest.raises(ContractExists):
        folder.open().infer_contract("sales")
    folder.open().infer_contract("sales", overwrite=True)


def test_what_is_written_can_be_used(make_folder: MakeFolder) -> None:
    """The rows that it was made from keep to it, and are held as long as it is a draft."""
    folder = make_folder()
    people(folder)
    folder.open().infer_contract("sales")
    path = folder.path / "contracts/sales.odcs.yaml"
    contract = read_contract(path, "sales.odcs.yaml", "shop.sales")
    assert contract.is_draft
    assert {rule.name for rule in contract.rules} == {"id.unique", "contact.unique", "status.invalidValues"}
    text = path.read_text()
    assert "person1@" not in text  # values of people are no examples
    assert YAML(typ="safe").load(text)["schema"][0]["properties"][2]["examples"] == ["new", "paid", "sent"]
    folder.change(contract="contracts/sales.odcs.yaml")
    with pytest.raises(Held, match="its contract is a draft"):
        folder.run()
    path.write_text(text.replace("status: draft", "status: active"))
    result = folder.run()
    assert (result.rows.inserted, result.rows.quarantined) == (100, 0)
    folder.write_csv("landing/b.csv", ["id", "contact", "status", "amount", "note"], [(1, "", "lost", 1, "")])
    with pytest.raises(Held, match="1 of its 1 rows would go to the quarantine"):
        folder.run()


def test_the_value_that_makes_a_column_text_is_told(make_folder: MakeFolder) -> None:
    """With its file and line, and what the other values are; of columns that are text anyway nothing is."""
    folder = make_folder()
    rows = [(n, f"{n}.5", f"2026-01-{n:02}", f"name {n}", n) for n in range(1, 10)]
    folder.write_csv("landing/a.csv", ["id", "amount", "day", "name", "email"], rows)
    mess = [(10, "n/a", "soon", "x", "b@c.de"), ('1"2', "n/a", "2026-02-01", "two\nlines", 5)]
    folder.write_csv("landing/b.csv", ["id", "amount", "day", "name", "email"], mess)
    folder.change(source={**folder.document["pipelines"]["sales"]["source"], "multi_line": True})
    shown = CliRunner().invoke(app, ["contract", "infer", "sales", "--project", str(folder.path)])
    told = [line.removeprefix("note: ") for line in shown.stdout.splitlines() if line.startswith("note: ")]
    assert told == [
        'column "id" is text because of "1"2" (landing/b.csv, line 3); the 10 others are of type bigint',
        'column "amount" is text because of 2 values, such as "n/a" (landing/b.csv, line 2); '
        "the 9 others are of type double",
        'column "day" is text because of "soon" (landing/b.csv, line 2); the 10 others are of type date',
        'column "email" is text because of one (landing/b.csv, line 2); the 10 others are of type bigint',
    ]


def test_the_value_in_json_lines(make_folder: MakeFolder) -> None:
    folder = make_folder(pipelines={"sales": Folder.files_pipeline("landing/*.jsonl", "jsonl")})
    values: list[dict[str, Any]] = [{"id": 1, "n": 1}, {"id": 2, "n": 2.5}, {"id": 3, "n": "none"}]
    folder.write_jsonl("landing/a.jsonl", values)
    [misfit] = folder.open().infer_contract("sales").misfits
    assert (misfit.column, misfit.kind, misfit.others, misfit.count) == ("n", "double", 2, 1)
    assert (misfit.value, misfit.origin, misfit.line) == ("none", "landing/a.jsonl", 3)


def test_nested_columns(make_folder: MakeFolder) -> None:
    folder = make_folder(pipelines={"sales": Folder.files_pipeline("landing/*.jsonl", "jsonl")})
    rows = [
        {"id": n, "place": {"city": "a", "at": {"x": 1.5}}, "tags": ["t"], "all": [{"k": n}]}
        for n in range(5)
    ]
    folder.write_jsonl("landing/a.jsonl", rows)
    folder.open().infer_contract("sales", "c.yaml")
    contract = read_contract(folder.path / "c.yaml", "c.yaml", "shop.sales")
    types = {column.name: str(column.column.type) for column in contract.columns}
    assert types == {
        "all": "array<struct<k:bigint>>",
        "id": "bigint",
        "place": "struct<at:struct<x:double>,city:string>",
        "tags": "array<string>",
    }
    text = (folder.path / "c.yaml").read_text()
    (folder.path / "c.yaml").write_text(text.replace("status: draft", "status: active"))
    folder.change(contract="c.yaml")
    assert folder.run().rows.inserted == 5


def test_types_of_parquet(make_folder: MakeFolder) -> None:
    folder = make_folder(pipelines={"sales": Folder.files_pipeline("landing/*.parquet", "parquet")})
    values = pa.table(
        {
            "m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
            "d": pa.array(["1.50"]).cast(pa.decimal128(9, 2)),
            "b": pa.array([b"x"]),
            "t": pa.array([0], pa.timestamp("us")),
        }
    )
    pq.write_table(values, folder.path / "landing/a.parquet")
    folder.open().infer_contract("sales", "c.yaml")
    contract = read_contract(folder.path / "c.yaml", "c.yaml", "shop.sales")
    types = [str(column.column.type) for column in contract.columns]
    assert types == ["map<string,int>", "decimal(9,2)", "binary", "timestamp_ntz"]


def test_nothing_to_look_at(make_folder: MakeFolder) -> None:
    with pytest.raises(NoColumns):
        make_folder().open().infer_contract("sales")


LABELLED = Path(__file__).parent / "personal_columns.json"


def test_guessed_personal_data() -> None:
    """Column names as they are met, labelled by hand: the guess finds most, and is seldom wrong."""
    labels: dict[str, bool] = json.loads(LABELLED.read_text())
    found = {name: guess(name, {}) is not None for name in labels}
    hits = sum(found[name] for name, is_personal in labels.items() if is_personal)
    wrong = sum(found[name] for name, is_personal in labels.items() if not is_personal)
    personal = sum(labels.values())
    others = len(labels) - personal
    print(f"personal data by name alone: {hits} of {personal} found, {wrong} of {others} wrongly")
    assert len(labels) >= 100
    assert hits / personal >= 0.85
    assert wrong / others <= 0.05
