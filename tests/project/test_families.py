"""Entries that stand for many tables: what they say of each, and what is refused before anybody connects."""

from __future__ import annotations

from pathlib import Path

import pytest

from esker.errors import InvalidProject, ManyPipelines, TableUnsuitable, UnknownPipeline
from esker.project import load_project
from esker.project.families import SourceTable
from esker.project.sources import JdbcSource
from esker.project.sources.jdbc import name_parts, written
from tests.project.test_load import write

SHOP = """\
project: shop
defaults: {properties: {owner: me}}
pipelines:
  notes: {source: {type: files, path: "*.csv", format: csv}, table: raw.notes}
  shop:
    source:
      type: jdbc
      url: jdbc:postgresql://db/shop
      user: etl
      password: ${SHOP_PASSWORD}
      tables: public.*
      exclude: [public.tmp_*, audit]
      cursor: updated_at
      lag: 10m
    table: raw.{table}
    mode: upsert
    every: 1h
    overrides:
      orders: {order_by: updated_at, source: {lag: 1h}}
      "log_*": {mode: append, source: {cursor: id, lag: null}}
"""


def orders(name: str = "orders", schema: str = "public", *key: str) -> SourceTable:
    return SourceTable(schema, name, key or ("id",))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOP_PASSWORD", "open sesame")
    return tmp_path


def test_what_a_family_says_of_its_tables(folder: Path) -> None:
    """Each has what is said of all, with what is other for it; a key is the database's."""
    project = load_project(write(folder, SHOP))
    assert list(project.pipelines) == ["notes"]
    family = project.families["shop"]
    plain, other, log = (family.member(orders(name)) for name in ("Customers", "orders", "log_web"))
    assert (plain.name, plain.pipeline.table, plain.pipeline.key) == (
        "shop.customers",
        "raw.customers",
        ["id"],
    )
    source = plain.pipeline.source
    assert isinstance(source, JdbcSource)
    assert (source.table, source.cursor, str(source.lag)) == ("public.Customers", "updated_at", "0:10:00")
    assert source.password is not None
    assert source.password.get_secret_value() == "open sesame"
    assert plain.pipeline.properties == {"owner": "me"}
    assert (other.pipeline.order_by, str(other.pipeline.source.lag)) == ("updated_at", "1:00:00")  # type: ignore[attr-defined]
    assert (log.pipeline.mode, log.pipeline.key, log.pipeline.source.lag) == ("append", [], None)  # type: ignore[attr-defined]


def test_transforms_of_tables(folder: Path) -> None:
    """One for all, or a file for each; a file that is not there is told with its line."""
    text = SHOP.replace("    every: 1h", "    transform: sql/{table}.sql\n    every: 1h")
    text = text.replace("{mode: append,", "{mode: append, transform: SELECT id FROM input,")
    (folder / "sql").mkdir()
    (folder / "sql/orders.sql").write_text("SELECT id, total FROM input")
    family = load_project(write(folder, text)).families["shop"]
    transforms = [family.member(orders(name)).pipeline.transform for name in ("orders", "log_web")]
    assert [each.sql for each in transforms if each] == [
        "SELECT id, total FROM input",
        "SELECT id FROM input",
    ]
    with pytest.raises(TableUnsuitable) as raised:
        family.member(orders("customers"))
    assert 'there is no file "sql/customers.sql"' in raised.value.reason


def test_which_tables_belong_to_it(folder: Path) -> None:
    family = load_project(write(folder, SHOP)).families["shop"]
    tables = [orders(name) for name in ("orders", "a.b", "tmp_x", "audit")] + [orders("orders", "other")]
    assert [str(each) for each in tables if family.holds(each, "public")] == ["public.orders", "public.a.b"]
    assert list(family.unmatched(tables, "public")) == []
    assert list(family.unmatched([orders("audit")], "public")) == ["orders"]
    assert list(family.unmatched([orders("audit", "other")], "public")) == ["public.*", "orders"]


def test_patterns_without_a_schema(folder: Path) -> None:
    """Where tables are looked for, they mean the default schema; where some are left out, any."""
    text = SHOP.replace("tables: public.*", "tables: ['*', sales.orders]")
    family = load_project(write(folder, text)).families["shop"]
    found = [orders("a"), orders("a", "sales"), orders("orders", "sales"), orders("audit", "sales")]
    assert [family.holds(each, "public") for each in found] == [True, False, True, False]


def test_names(folder: Path) -> None:
    """A pipeline's name says what the table's says; long ones stay apart."""
    family = load_project(write(folder, SHOP)).families["shop"]
    assert family.name_of(orders("Order Details")) == "shop.order_details"
    assert family.name_of(orders("2024")) == "shop._2024"
    one, two = (family.name_of(orders("x" * 62 + each)) for each in "ab")
    assert (len(one), len(two), one == two) == (63, 63, False)
    text = SHOP.replace("raw.{table}", "raw.{schema}_{table}")
    family = load_project(write(folder, text)).families["shop"]
    assert family.name_of(orders()) == "shop.public.orders"
    assert family.member(orders()).pipeline.table == "raw.public_orders"


@pytest.mark.parametrize("parts", [["orders"], ["public", "a.b"], ['"x', "y"], ["a b", 'c"d.e']])
def test_names_with_dots_and_quotes(parts: list[str]) -> None:
    assert name_parts(written(*parts)) == parts


def test_a_table_that_does_not_suit(folder: Path) -> None:
    """The error says where the file says what does not fit."""
    family = load_project(write(folder, SHOP)).families["shop"]
    with pytest.raises(TableUnsuitable) as caught:
        family.member(SourceTable("public", "orders"))
    assert "esker.yml:16:5: pipelines.shop.orders.mode" in caught.value.reason
    assert "no primary key" in caught.value.reason


def test_a_name_for_many(folder: Path) -> None:
    project = load_project(write(folder, SHOP))
    with pytest.raises(ManyPipelines, match='"shop" stands for many'):
        project.pipeline("shop")
    for name in ("shop", "shop.orders", "notes"):
        project.check_name(name)
    for name in ("shops", "notes.orders"):
        with pytest.raises(UnknownPipeline):
            project.check_name(name)


def test_contracts(folder: Path) -> None:
    """Each table has its own; one that has none is told so."""
    (folder / "contracts").mkdir()
    contract = (
        "apiVersion: v3.1.0\nkind: DataContract\nid: a\nversion: 1.0.0\nstatus: active\nschema:\n"
        "  - name: orders\n    properties:\n"
        "      - {name: number, logicalType: integer, primaryKey: true, required: true}\n"
    )
    (folder / "contracts" / "orders.odcs.yaml").write_text(contract)
    text = SHOP.replace("    every: 1h\n", "    contract: contracts/{table}.odcs.yaml\n")
    family = load_project(write(folder, text)).families["shop"]
    member = family.member(orders())
    assert member.contract is not None
    assert (member.pipeline.key, list(member.pipeline.columns)) == (["number"], ["number"])
    with pytest.raises(TableUnsuitable) as caught:
        family.member(orders("customers"))
    assert 'there is no file "contracts/customers.odcs.yaml"' in caught.value.reason


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("raw.{table}", "raw.all", "pipelines.shop.table: each table needs one of its own"),
        ("raw.{table}", "raw.{table}_{day}", r'"\{day\}" is not known here'),
        ("tables: public.*", "tables: []", "pipelines.shop.source.tables: expected tables"),
        ("tables: public.*", "tables: public.*\n      table: orders", "write tables: or table:"),
        ("exclude: [", "exclude: [3, ", "pipelines.shop.source.exclude: expected tables"),
        ("mode: upsert", "mode: upsrt", 'esker.yml:16:5: pipelines.shop.mode: "upsrt" is not known here'),
        ("mode: upsert", "mode: sync", "esker.yml:16:5: .*mode sync takes a batch for all there is"),
        ("order_by: updated_at", "ordr_by: updated_at", 'esker.yml:19:16: .*unknown key "ordr_by"'),
        ("lag: null", "range: closed", "esker.yml:20:.*rows would be read again"),
        ("order_by: updated_at", "catalog: other", "catalog: is the same for all tables"),
        ("{lag: 1h}", "{url: 'jdbc:sqlite:x'}", "overrides.orders.source.url: url: is the same for all"),
        ("every: 1h", "catalog: nowhere", '"nowhere" is no connection to a catalog'),
        ("every: 1h", "evry: 1h", 'esker.yml:17:5: pipelines.shop.evry: unknown key "evry"'),
    ],
)
def test_what_is_refused(folder: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InvalidProject, match=message) as caught:
        load_project(write(folder, SHOP.replace(old, new)))
    assert len(caught.value.problems) == 1
