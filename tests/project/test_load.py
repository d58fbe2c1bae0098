"""The project file as users write it: what is refused, and what the refusal says."""

from __future__ import annotations

from pathlib import Path

import pytest

from esker.errors import (
    InvalidProject,
    InvalidYaml,
    ProjectNotFound,
    UnknownConsumer,
    UnknownEnvironment,
    UnknownPipeline,
)
from esker.project import load_project
from esker.project.sources import FilesSource
from tests.folder import Folder

GOOD = """\
project: shop
pipelines:
  sales:
    source: {type: files, path: "landing/*.csv", format: csv}
    table: shop.sales
"""


def write(folder: Path, text: str) -> Path:
    (folder / "esker.yml").write_text(text, encoding="utf-8")
    return folder


def problems(folder: Path, text: str, env: str | None = None) -> list[str]:
    with pytest.raises(InvalidProject) as caught:
        load_project(write(folder, text), env)
    return [str(problem) for problem in caught.value.problems]


def test_a_good_file_is_read_with_its_defaults(tmp_path: Path) -> None:
    """A few lines make a project: the embedded catalog, append, parquet, Spark on this machine."""
    project = load_project(write(tmp_path, GOOD))
    sales = project.pipeline("sales")
    assert (project.catalog.type, project.spark.master) == ("sqlite", "local[*]")
    assert (sales.mode, sales.format, sales.format_version, sales.evolution) == (
        "append",
        "parquet",
        2,
        "evolve",
    )
    assert project.path("landing") == tmp_path / "landing"


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    """A file saved by a Windows editor is read like any other."""
    assert load_project(write(tmp_path, "\ufeff" + GOOD)).project == "shop"


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
def test_a_folder_without_a_project_says_how_to_get_one(tmp_path: Path, make: object) -> None:
    """Neither a missing nor an empty folder is a project."""
    folder = tmp_path / "nothing"
    assert callable(make)
    make(folder)
    with pytest.raises(ProjectNotFound, match=r"no esker\.yml") as caught:
        load_project(folder)
    assert "esker init" in caught.value.remedy


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("project: shop\npipelines: {sales: [1, 2}\n", 2, 25, "expected"),
        ("project: shop\nspark:\n\tmaster: yarn\n", 3, 1, "a tab stands here; YAML indents with spaces"),
        ("project: shop\nproject: mart\n", 2, 1, 'key "project" stands here twice'),
        (
            "project: shop\nspark:\n  master: a\n  conf: {}\n  master: b\n",
            5,
            3,
            'key "master" stands here twice',
        ),
        ("project: shop\n---\nproject: mart\n", 2, 1, "expected a single document"),
        ("- project\n", 1, 1, "expected keys and values"),
        ("just words\n", 1, 1, "expected keys and values"),
    ],
)
def test_broken_yaml_names_its_place(tmp_path: Path, text: str, line: int, column: int, message: str) -> None:
    """What is not YAML is refused with line and column, in words."""
    with pytest.raises(InvalidYaml) as caught:
        load_project(write(tmp_path, text))
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.column) == ("esker.yml", line, column)
    assert message in problem.message
    assert caught.value.remedy


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are an error with a message, not a stack trace."""
    (tmp_path / "esker.yml").write_bytes(b"project: \xff\xfe")
    with pytest.raises(InvalidYaml, match="cannot be read"):
        load_project(tmp_path)


def test_an_empty_file_lacks_a_name(tmp_path: Path) -> None:
    """An empty file is a project without a name."""
    assert problems(tmp_path, "") == ['esker.yml: key "project" is missing']


@pytest.mark.parametrize(
    ("before", "after", "place", "guess"),
    [
        ("project: shop", "projcet: shop", "1:1: projcet", "project"),
        ("    table:", "    tabel:", "5:5: pipelines.sales.tabel", "table"),
        ("csv}", "csv, delimitr: ;}", "4:63: pipelines.sales.source.delimitr", "delimiter"),
        (
            "pipelines:",
            "catalog: {type: sqlite, warehose: w}\npipelines:",
            "2:25: catalog.warehose",
            "warehouse",
        ),
        ("pipelines:", "spark:\n  mastr: yarn\npipelines:", "3:3: spark.mastr", "master"),
        (
            "shop.sales\n",
            "shop.sales\n    columns:\n      id: {type: int, requird: true}\n",
            "7:23: pipelines.sales.columns.id.requird",
            "required",
        ),
    ],
)
def test_an_unknown_key_is_named_with_the_likely_one(
    tmp_path: Path, before: str, after: str, place: str, guess: str
) -> None:
    """At every level an unknown key has its place in the file and the key that was probably meant."""
    key = place.rpartition(".")[2].rpartition(" ")[2]
    expected = f'esker.yml:{place}: unknown key "{key}"; did you mean "{guess}"?'
    assert expected in problems(tmp_path, GOOD.replace(before, after))


def test_a_key_that_resembles_nothing_gets_the_list_of_known_keys(tmp_path: Path) -> None:
    """Where no key is near, all of them are named."""
    (problem,) = problems(tmp_path, GOOD.replace("project: shop", "project: shop\nspark: {zzz: 1}"))
    assert problem.endswith('unknown key "zzz"; known keys: conf, driver_memory, master')


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("    table: shop.sales\n", ""), 'esker.yml:3:3: pipelines.sales: key "table" is missing'),
        ((", format: csv", ""), 'esker.yml:4:5: pipelines.sales.source: key "format" is missing'),
        (("format: csv", "format: cvs"), 'source.format: "cvs" is not known here; did you mean "csv"?'),
        (
            ("format: csv", "format: yaml"),
            "source.format: \"yaml\" is not known here; expected 'csv', 'jsonl', 'json', 'parquet', 'avro', "
            "'orc' or 'xml'",
        ),
        (("type: files", "type: fils"), 'source.type: unknown type "fils"; did you mean "files"?'),
        (
            ("project: shop\n", "project: shop\ncatalog: {type: sqlit}\n"),
            'esker.yml:2:11: catalog.type: unknown type "sqlit"; did you mean "sqlite"?',
        ),
        (
            ("project: shop\n", "project: shop\ncatalog: {path: x}\n"),
            'esker.yml:2:1: catalog: key "type" is missing',
        ),
        (("project: shop", "project: Shop"), '"Shop" is no name: lower-case letters, digits and _ only'),
        (("project: shop", "project: 5"), 'esker.yml:1:1: project: expected text, found "5"'),
        (("shop.sales", "sales"), '"sales" is no table name; write namespace.table'),
        (("shop.sales", "shop.sa-les"), '"shop.sa-les" is no table name; write namespace.table'),
        (("shop.sales", "[shop, sales]"), "pipelines.sales.table: expected text, found a list"),
        (("project: shop", "project: shop\nspark: {driver_memory: lots}"), '"lots" is no amount of memory'),
        (("project: shop", "project: shop\nspark: {master: here}"), 'unknown master "here"; write local[*]'),
        (("project: shop", "project: shop\nspark: [a]"), "spark: expected keys and values, found a list"),
        (
            ("project: shop", "project: shop\nconnections:"),
            "connections: expected keys and values, found nothing",
        ),
        (
            ("shop.sales\n", "shop.sales\n    partition_by: day(x)\n"),
            'esker.yml:6:5: pipelines.sales.partition_by: expected a list, found "day(x)"',
        ),
        (("format: csv", 'format: csv, delimiter: ""'), "delimiter: string should have at least 1 character"),
        (
            ("format: csv", "format: csv, max_files: 0"),
            "max_files: input should be greater than or equal to 1",
        ),
        (("landing/*.csv", "ftp://host/*.csv"), 'source.path: files cannot be read from "ftp://"'),
        (("sales:", "Sales:"), '"Sales" is no name: lower-case letters, digits and _ only'),
        (("sales:", "5:"), "esker.yml:3:3: "),
    ],
)
def test_a_wrong_value_is_refused_in_words(tmp_path: Path, change: tuple[str, str], expected: str) -> None:
    """Missing keys, wrong words and wrong types are told in words, at their place."""
    assert any(expected in problem for problem in problems(tmp_path, GOOD.replace(*change)))


@pytest.mark.parametrize(
    ("extra", "place", "message"),
    [
        ("every: 15m\n    cron: '0 * * * *'", "7:5: pipelines.sales.cron", "write every: or cron:, not both"),
        ("cron: every day", "6:5: pipelines.sales.cron", "is no cron expression"),
        ("cron: '0 0 30 2 *'", "6:5: pipelines.sales.cron", "is no cron expression: Bad day-of-month"),
        ("every: 15", "6:5: pipelines.sales.every", "a duration needs a unit"),
        ("every: soon", "6:5: pipelines.sales.every", "is no duration"),
        ("columns: {id: int, ID: int}", "6:24: pipelines.sales.columns.ID", "differ in case only"),
        ("columns: {_esker_x: int}", "6:15: pipelines.sales.columns._esker_x", "are reserved"),
        ("columns: {id: integr}", "6:15: pipelines.sales.columns.id", 'unknown type "integr"'),
        ("columns: {id: {type: 'array<'}}", "6:20: pipelines.sales.columns.id.type", "ends too early"),
        ("columns: {id: {doc: x}}", "6:15: pipelines.sales.columns.id", 'key "type" is missing'),
        ("partition_by: [id, 'day(']", "6:24: pipelines.sales.partition_by.1", "is no partition field"),
        ("properties: {esker.head: x}", "6:18: pipelines.sales.properties.esker.head", "belongs to Esker"),
        (
            "properties: {format-version: 3}",
            "6:18: pipelines.sales.properties.format-version",
            "format_version:",
        ),
        ("catalog: other", "6:5: pipelines.sales.catalog", '"other" is no connection'),
        ("mode: upsert", "6:5: pipelines.sales.mode", "mode upsert needs key:"),
        ("versions: {valid_to: b}", "6:5: pipelines.sales.versions", "versions: is for mode scd2"),
        (
            "mode: scd2\n    key: [id]\n    columns: {valid_to: date}",
            "6:5: pipelines.sales.mode",
            'column "valid_to" is kept by mode scd2',
        ),
        ("order_by: at", "6:5: pipelines.sales.order_by", "is for modes with a key (upsert, "),
        (
            "mode: delete_insert\n    key: [id]\n    order_by: at",
            "8:5: pipelines.sales.order_by",
            "order_by: has no meaning in mode delete_insert: what a batch holds of a key replaces all",
        ),
        (
            "columns: {id: int}\n    evolution: freeze\n    partition_by: [day(at)]",
            "8:20: pipelines.sales.partition_by.0",
            'column "at" is not declared',
        ),
    ],
)
def test_a_pipeline_that_makes_no_sense_points_at_the_key(
    tmp_path: Path, extra: str, place: str, message: str
) -> None:
    """Mistakes that only show between keys still point at the one to change."""
    (problem,) = problems(tmp_path, f"{GOOD}    {extra}\n")
    assert problem.startswith(f"esker.yml:{place}: ")
    assert message in problem


@pytest.mark.parametrize("ending", ["__files", "__changes", "__quarantine", "__FILES"])
def test_a_table_named_like_a_side_table_is_refused(tmp_path: Path, ending: str) -> None:
    """Rows and Esker's own records would share a table."""
    more = f"  other:\n    source: {{type: files, path: b, format: csv}}\n    table: shop.sales{ending}\n"
    (problem,) = problems(tmp_path, GOOD + more)
    assert problem.startswith("esker.yml:8:5: pipelines.other.table: ")
    assert f"names that end with {ending.lower()} are reserved" in problem


def test_csv_without_a_header_needs_columns(tmp_path: Path) -> None:
    """Nothing else could name the columns of such a file."""
    text = GOOD.replace("format: csv", "format: csv, header: false")
    (problem,) = problems(tmp_path, text)
    assert problem == (
        "esker.yml:4:63: pipelines.sales.source.header: csv without a header needs columns:, "
        "in the order of the file"
    )
    assert load_project(write(tmp_path, text + "    columns: {id: bigint}\n")).pipelines


def test_the_nearest_connection_is_suggested(tmp_path: Path) -> None:
    """A pipeline that misspells its catalog is told the connection's name."""
    text = GOOD + "    catalog: achive\nconnections:\n  archive: {type: sqlite, path: a.db, warehouse: a}\n"
    (problem,) = problems(tmp_path, text)
    assert problem.endswith('"achive" is no connection to a catalog; did you mean "archive"?')


def test_two_catalogs_of_one_name_are_refused(tmp_path: Path) -> None:
    """Spark could not tell them apart."""
    text = GOOD + "connections:\n  lake: {type: sqlite, path: a.db, warehouse: a}\n"
    assert "two catalogs have the same name" in problems(tmp_path, text)[0]


def test_every_problem_is_reported_in_the_order_of_the_file(tmp_path: Path) -> None:
    """One look at the message is enough to correct the whole file."""
    found = problems(
        tmp_path,
        "project: Shop\nspark: {mastr: x}\npipelines:\n  sales:\n"
        "    source: {type: files, path: a, format: cvs}\n",
    )
    assert [problem.split(": ")[0] for problem in found] == [
        "esker.yml:1:1",
        "esker.yml:2:9",
        "esker.yml:4:3",
        "esker.yml:5:36",
    ]


def test_a_mistake_in_defaults_is_reported_once_and_where_it_stands(tmp_path: Path) -> None:
    """A wrong default is one mistake, however many pipelines take it."""
    text = """\
project: shop
defaults:
  mode: apend
  source: {type: files, format: csv}
pipelines:
  a: {source: {path: a}, table: s.a}
  b: {source: {path: b}, table: s.b}
"""
    (problem,) = problems(tmp_path, text)
    assert problem == ('esker.yml:3:3: pipelines.a.mode: "apend" is not known here; did you mean "append"?')


def test_columns_have_a_short_and_a_long_form(tmp_path: Path) -> None:
    """`id: bigint` and `id: {type: bigint}` mean the same."""
    short, long = (
        load_project(write(tmp_path, f"{GOOD}    columns: {{id: {form}}}\n"))
        .pipeline("sales")
        .declared_columns()
        for form in ("bigint", "{type: bigint}")
    )
    assert short == long


def test_settings_that_are_passed_on_may_be_numbers(tmp_path: Path) -> None:
    """Spark and Iceberg take text only; YAML's numbers and truth values become it."""
    text = GOOD.replace("format: csv", "format: csv, options: {maxColumns: 9}") + (
        "    properties: {write.a: true, write.b: 1}\nspark: {conf: {a.b: false, c.d: 2.5}}\n"
    )
    project = load_project(write(tmp_path, text))
    sales = project.pipeline("sales")
    assert isinstance(sales.source, FilesSource)
    assert sales.source.options == {"maxColumns": "9"}
    assert sales.properties == {"write.a": "true", "write.b": "1"}
    assert project.spark.conf == {"a.b": "false", "c.d": "2.5"}


def test_a_setting_without_a_value_is_refused(tmp_path: Path) -> None:
    """An empty value is a mistake, not the text `None`."""
    (problem,) = problems(tmp_path, GOOD + "spark:\n  conf:\n    spark.a:\n")
    assert problem == "esker.yml:8:5: spark.conf.spark.a: expected text, found nothing"


def test_a_yaml_merge_keeps_working(tmp_path: Path) -> None:
    """Anchors and merges are YAML, so they may be used; errors point near them."""
    text = GOOD + "    <<: &more {mode: append}\n  other:\n    <<: *more\n    tabel: x.y\n"
    assert any('unknown key "tabel"' in problem for problem in problems(tmp_path, text))


@pytest.mark.parametrize(
    ("asked", "remedy"),
    [("sale", "Did you mean sales?"), ("zzz", "Declare it below pipelines: in esker.yml.")],
)
def test_an_unknown_pipeline_gets_the_nearest_name(tmp_path: Path, asked: str, remedy: str) -> None:
    """A misspelt pipeline is answered with the one that was meant."""
    with pytest.raises(UnknownPipeline) as caught:
        load_project(write(tmp_path, GOOD)).pipeline(asked)
    assert caught.value.remedy == remedy
    assert "sales" in caught.value.reason


def test_an_unknown_environment_names_those_that_exist(tmp_path: Path) -> None:
    """`--env` with a wrong name lists the right ones."""
    with pytest.raises(UnknownEnvironment, match='"live"') as caught:
        load_project(write(tmp_path, GOOD + "environments: {prod: {}, test: {}}\n"), "live")
    assert "prod, test" in caught.value.reason


def test_unknown_consumer_names_the_nearest(tmp_path: Path) -> None:
    """A slip of the pen costs one look."""
    to = {"type": "files", "path": "out"}
    consumers = {"search": {"from": "sales", "id": ["id"], "to": to}}
    project = load_project(Folder(tmp_path, consumers=consumers).path)
    with pytest.raises(UnknownConsumer) as caught:
        project.consumer("serch")
    assert "search" in caught.value.remedy
