"""A contract is made from real data, and the data keeps to it."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import stamina
from ruamel.yaml import YAML
from typer.testing import CliRunner

from esker.cli.main import app
from esker.contracts.personal import guess
from esker.errors import ContractExists, Held, NoColumns, PartsMissing
from esker.project.contract import read_contract
from tests.contracts.folder import MakeFolder
from tests.folder import Folder
from tests.sources.oai_server import Feed, Query, moment, send, serving

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


def feed(count: int) -> Feed:
    """Return a feed with records of its last quarters of an hour only."""
    found = Feed(moment("13:00"))
    for number in range(count):
        found.put(f"r{number}", f"12:{45 + number % 15}", f"text {number}")
    return found


def harvest(make_folder: MakeFolder, url: str) -> Folder:
    window = {"every": "15m", "start": "2026-01-01T12:00:00Z", "max_windows": 1}
    source = {"type": "oai_pmh", "url": url, "metadata_prefix": "marc", "window": window}
    keyed = {"mode": "upsert", "key": ["id"], "order_by": "last_modified"}
    return make_folder(pipelines={"sales": {"source": source, "table": "shop.sales", **keyed}})


def test_windows_that_are_empty_at_first(make_folder: MakeFolder) -> None:
    """All windows are looked at, whatever a batch would take of them."""
    with serving(feed(30)) as served:
        folder = harvest(make_folder, served.url)
        found = folder.open().infer_contract("sales")
    assert found.rows == 30
    seen = {each.column.name: each for each in found.columns}
    assert seen["id"].is_unique
    assert seen["content"].is_required


def test_a_window_that_cannot_be_read(make_folder: MakeFolder) -> None:
    """A contract of the rest might say what does not hold: nothing is written."""

    def concerns(query: Query) -> bool:
        return query.get("from") == "2026-01-01T12:15:00Z"

    with serving(feed(30)) as served, stamina.set_testing(True, attempts=2, cap=True):
        served.always = [(concerns, lambda request: send(request, 500, b""))]
        folder = harvest(make_folder, served.url)
        with pytest.raises(PartsMissing):
            folder.open().infer_contract("sales")
    assert not (folder.path / "contracts/sales.odcs.yaml").exists()


def test_all_batches_of_a_function(make_folder: MakeFolder) -> None:
    """Values of later batches count: types, what is required, and what is unique."""
    code = """
        import esker

        @esker.source
        def rows():
            for batch in range(3):
                for number in range(20):
                    row = {"id": number, "size": number if batch < 2 else "large", "part": batch}
                    yield row if batch else row | {"note": None}
                    if batch == 1:
                        yield {"id": number, "size": None, "part": 1.5}
                yield esker.reached(batch)
    """
    source = {"type": "python", "function": "sources/shop.py:rows", "rows_per_batch": 20}
    folder = make_folder(pipelines={"sales": {"source": source, "table": "shop.sales", "mode": "append"}})
    folder.write("sources/shop.py", textwrap.dedent(code))
    found = folder.open().infer_contract("sales")
    seen = {each.column.name: each for each in found.columns}
    assert found.rows == 80
    assert {name: str(each.column.type) for name, each in seen.items()} == {
        "id": "bigint",
        "size": "string",
        "part": "double",
    }
    assert (seen["size"].is_required, seen["id"].is_unique, seen["id"].is_required) == (False, False, True)


LABELLED = Path(__file__).parent / "personal_columns.json"
SCHEMAS = Path(__file__).parent / "personal_schemas.json"
"""Columns of databases that others made. No word was added to the list because of them."""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("emailaddress", "email"),
        ("mobilenumber", "phone"),
        ("homephone", "phone"),
        ("address2", "address"),
        ("creditcardnumber", "card"),
        ("passportnumber", "identity"),
        ("taxnumber", "identity"),
        ("lng", "position"),
        ("author_id", None),
        ("cell_id", None),
        ("token_count", None),
        ("ip_version", None),
        ("phonenumbertypeid", None),
        ("filename", None),
    ],
)
def test_words_that_are_written_together(name: str, kind: str | None) -> None:
    found = guess(name, {})
    assert (found.kind if found else None) == kind


def test_personal_data_of_databases_that_others_made() -> None:
    """The hit rate by names alone: what is found, and what is taken for personal and is not."""
    schemas = json.loads(SCHEMAS.read_text())
    del schemas["what"]
    personal = [name for schema in schemas.values() for name in schema["personal"]]
    other = [name for schema in schemas.values() for name in schema["other"]]
    hits = sum(guess(name, {}) is not None for name in personal)
    wrong = sum(guess(name, {}) is not None for name in other)
    told = f"finds {hits} of {len(personal)} columns with personal data, and takes {wrong} of {len(other)}"
    page = " ".join((Path(__file__).parents[2] / "docs/how-to/contracts.md").read_text().split())
    assert f"{told} others" in page


def test_personal_data_by_its_values(make_folder: MakeFolder) -> None:
    """Whatever a column is called: cards, which come as numbers, phones and addresses of machines."""
    cards = ("4111111111111111", "5555555555554444", "378282246310005", "6011111111111117")
    rows = [
        (cards[n % 4], f"4{n:015}", f"+49 30 {1000000 + n}", f"555-010-{1000 + n}", f"10.0.0.{n}", n)
        for n in range(40)
    ]
    folder = make_folder()
    folder.write_csv("landing/a.csv", ["k1", "k2", "k3", "k4", "k5", "k6"], rows)
    found = folder.open().infer_contract("sales")
    assert str(found.columns[0].column.type) == "bigint"
    kinds = {each.column.name: each.personal.kind if each.personal else None for each in found.columns}
    assert kinds == {
        "k1": "card",
        "k2": None,  # as long, and the check digits are wrong
        "k3": "phone",
        "k4": "phone",
        "k5": "network",
        "k6": None,
    }


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
