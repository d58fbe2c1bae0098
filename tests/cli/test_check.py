"""`esker check`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import Terminal


def test_a_right_project_is_told_in_a_line(terminal: Terminal, shop: Path) -> None:
    """One line on standard output, nothing else, status 0."""
    answer = terminal.ask("check", "--project", shop)
    assert (answer.status, answer.stdout, answer.stderr) == (0, "shop: 2 pipelines, no problems\n", "")


def test_the_document_of_a_right_project(terminal: Terminal, shop: Path) -> None:
    """Programs get the same as a document."""
    answer = terminal.ask("check", "-p", shop, "--json")
    assert answer.status == 0
    assert answer.document == {
        "status": "succeeded",
        "project": "shop",
        "environment": None,
        "pipelines": ["orders", "customers"],
        "consumers": [],
        "notes": [],
    }


def test_consumers_are_told_too(terminal: Terminal, shop: Path) -> None:
    """Whoever declares a consumer sees that it was looked at."""
    (shop / "esker.yml").write_text(
        "project: shop\n"
        "defaults: {source: {type: files, path: a, format: csv}, mode: upsert, key: [id]}\n"
        "pipelines: {sales: {table: s.a}}\n"
        "consumers: {news: {from: sales, to: {type: files, path: out}}}\n"
    )
    answer = terminal.ask("check", "--project", shop)
    assert (answer.status, answer.stdout) == (0, "shop: 1 pipeline, 1 consumer, no problems\n")
    assert terminal.ask("check", "-p", shop, "--json").document["consumers"] == ["news"]


def test_a_catalog_for_one_writer_is_told_of(terminal: Terminal, shop: Path) -> None:
    """The file is right, and people should know what they chose."""
    (shop / "esker.yml").write_text("project: shop\ncatalog: {type: hadoop, warehouse: lake}\n")
    answer = terminal.ask("check", "--project", shop)
    assert (answer.status, answer.stderr) == (0, "")
    first, note = answer.stdout.splitlines()
    assert first == "shop: 0 pipelines, no problems"
    assert note.startswith("  note: catalog lake: a hadoop catalog is for one writer at a time")
    [told] = terminal.ask("check", "-p", shop, "--json").document["notes"]
    assert note.endswith(told)


CONSUMERS = """\
project: shop
connections:
  search: {type: elasticsearch, hosts: ["http://localhost:9200"]}
  hook: {type: webhook, url: "http://localhost/hook"}
pipelines:
  sales: {source: {type: files, path: "*.csv", format: csv}, table: shop.sales, mode: upsert, key: [id]}
consumers:
"""


@pytest.mark.parametrize(
    ("consumer", "told"),
    [
        ("{from: sale, to: {type: files, path: out}}", 'from: "sale" is no pipeline; did you mean "sales"?'),
        ("{form: sales, to: {type: files, path: out}}", 'form: unknown key "form"; did you mean "from"?'),
        ("{from: sales}", 'key "to" is missing'),
        ("{from: sales, to: {type: files, paht: out}}", 'to.paht: unknown key "paht"; did you mean "path"?'),
        ("{from: sales, to: {type: elastic}}", 'unknown type "elastic"; did you mean "elasticsearch"?'),
        (
            "{from: sales, to: {type: elasticsearch, connection: serach, index: a}}",
            'to.connection: "serach" is no connection of type elasticsearch; did you mean "search"?',
        ),
        (
            "{from: sales, to: {type: elasticsearch, connection: hook, index: a}}",
            '"hook" is no connection of type elasticsearch; it is of type webhook; there is search',
        ),
        ("{from: sales, transform: to_work, to: {type: files, path: out}}", "write file and function"),
        (
            "{from: sales, transform: sql/a.sql, to: {type: files, path: out}}",
            'transform: there is no file "sql/a.sql"',
        ),
    ],
)
def test_a_mistake_in_a_consumer(terminal: Terminal, tmp_path: Path, consumer: str, told: str) -> None:
    """Told with its line, and with what was probably meant, before anything is started."""
    (tmp_path / "esker.yml").write_text(f"{CONSUMERS}  news: {consumer}\n")
    for verb in ("check", "deliver"):
        answer = terminal.ask(verb, "--project", tmp_path)
        assert answer.status == 2
        assert told in answer.stderr
        assert "esker.yml:8:" in answer.stderr


def test_nothing_is_touched(terminal: Terminal, shop: Path) -> None:
    """Checking makes no files, not even the state database."""
    before = sorted(shop.rglob("*"))
    terminal.ask("check", "--project", shop)
    assert sorted(shop.rglob("*")) == before


def test_every_problem_is_printed_with_its_place(terminal: Terminal, shop: Path) -> None:
    """People see all problems at once, on standard error."""
    (shop / "esker.yml").write_text("project: Shop\nspark: {mastr: yarn}\n")
    answer = terminal.ask("check", "--project", shop)
    assert (answer.status, answer.stdout) == (2, "")
    lines = answer.stderr.splitlines()
    assert lines[0].startswith('error ESK-PROJECT-003 esker.yml:1:1: project: "Shop" is no name')
    # Each below the one before it.
    indent = " " * lines[0].index("esker.yml")
    assert lines[1] == f'{indent}esker.yml:2:9: spark.mastr: unknown key "mastr"; did you mean "master"?'
    assert lines[2] == "  why: 2 problems in the project file."
    assert lines[3] == "  do:  Correct the file, then: esker check"


def test_problems_as_a_document(terminal: Terminal, shop: Path) -> None:
    """Each problem has file, line, column, path, message and remedy."""
    (shop / "esker.yml").write_text("project: shop\nspark: {mastr: yarn}\n")
    answer = terminal.ask("check", "--project", shop, "--json")
    assert (answer.status, answer.stderr) == (2, "")
    assert answer.document["status"] == "failed"
    assert set(answer.error) == {"code", "message", "reason", "remedy", "problems"}
    assert answer.error["problems"] == [
        {
            "message": 'unknown key "mastr"; did you mean "master"?',
            "file": "esker.yml",
            "line": 2,
            "column": 9,
            "path": "spark.mastr",
            "remedy": "",
        }
    ]


def test_an_environment_is_checked_when_it_is_named(terminal: Terminal, shop: Path) -> None:
    """`--env` chooses; a wrong name is an error."""
    with (shop / "esker.yml").open("a") as file:
        file.write("environments: {prod: {spark: {mastr: yarn}}}\n")
    assert terminal.ask("check", "--project", shop).status == 0
    assert terminal.ask("check", "--project", shop, "--env", "prod").status == 2
    assert "unknown environment" in terminal.ask("check", "--project", shop, "--env", "prd").stderr


def test_a_missing_project_is_told_with_a_remedy(terminal: Terminal, tmp_path: Path) -> None:
    """Who stands in the wrong folder learns where a project is looked for."""
    answer = terminal.ask("check", "--project", tmp_path, "--json")
    assert (answer.status, answer.error["code"]) == (2, "ESK-PROJECT-001")
    assert "--project DIR" in answer.error["remedy"]


@pytest.mark.parametrize("output", ["--json", None])
def test_secrets_are_not_printed(
    terminal: Terminal, shop: Path, monkeypatch: pytest.MonkeyPatch, output: str | None
) -> None:
    """Neither on success nor in an error, neither for people nor for programs."""
    secret = 'hunter2"\\'
    monkeypatch.setenv("DB_PASSWORD", secret)
    with (shop / "esker.yml").open("a") as file:
        file.write('connections: {db: {type: jdbc, url: "${URL}", name: "${NAME}", warehouse: w, ')
        file.write('password: "${DB_PASSWORD}"}}\n')
    address = "jdbc:postgresql://db/x"
    for url, name, status in (
        (address, "db", 0),
        (f"{address}?password={secret}", "db", 2),
        (address, secret, 2),
    ):
        monkeypatch.setenv("URL", url)
        monkeypatch.setenv("NAME", name)
        answer = terminal.ask("check", "--project", shop, *([output] if output else []))
        assert answer.status == status
        assert "hunter2" not in answer.stdout + answer.stderr
