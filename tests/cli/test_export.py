"""`esker export`: printed, as a document, or as files; secrets stay variables."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.folder import Folder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose tables are in a store that wants a key."""
    monkeypatch.setenv("LAKE_KEY", "AKIA0123")
    monkeypatch.setenv("LAKE_SECRET", "opensesame-export")
    store = {"type": "s3", "region": "eu-west-1", "access_key": "${LAKE_KEY}", "secret_key": "${LAKE_SECRET}"}
    catalog = {"type": "rest", "uri": "https://catalog.example.org", "warehouse": "lake"}
    return Folder(tmp_path / "project", catalog=catalog, store=store).path


def test_a_reader(terminal: Terminal, project: Path, tmp_path: Path) -> None:
    """The text alone is on standard output, so that it can go to a file; what to set is told beside it."""
    printed = terminal.ask("export", "trino", "--project", project)
    assert printed.status == 0
    assert printed.stdout.startswith("connector.name=iceberg\n")
    assert "s3.aws-secret-key=${ENV:LAKE_SECRET}\n" in printed.stdout
    assert "LAKE_SECRET" in printed.stderr

    document = terminal.ask("export", "trino", "--project", project, "--json").document
    [(name, text)] = document["files"].items()
    assert (text.strip(), document["written"]) == (printed.stdout.strip(), [])
    assert "LAKE_SECRET" in document["variables"]

    written = terminal.ask("export", "trino", "--to", tmp_path / "etc/catalog", "--project", project)
    assert written.stdout == f"wrote {tmp_path / 'etc/catalog' / name}\n"
    assert (tmp_path / "etc/catalog" / name).read_text() == text
    for answer in (printed, written):
        assert "opensesame" not in answer.stdout + answer.stderr


def test_a_platform(terminal: Terminal, project: Path, tmp_path: Path) -> None:
    """Several files, of which a script can be started."""
    to = tmp_path / "exported"
    answer = terminal.ask("export", "spark-submit", "sales", "--to", to, "--project", project, "--json")
    assert answer.status == 0, answer.stdout
    assert sorted(answer.document["written"]) == sorted(str(each) for each in to.rglob("*") if each.is_file())
    assert os.access(to / "submit.sh", os.X_OK)
    printed = terminal.ask("export", "spark-submit", "sales", "--project", project)
    assert "# submit.sh\n" in printed.stdout
    texts = [each.read_bytes() for each in to.rglob("*") if each.is_file()]
    assert not any(b"opensesame" in text for text in texts)
    assert "opensesame" not in printed.stdout + json.dumps(answer.document)


def test_what_cannot_be_written(terminal: Terminal, project: Path) -> None:
    """Nobody that is known, and a pipeline that there is not."""
    nobody = terminal.ask("export", "snowflake", "--project", project, "--json")
    assert nobody.status == 2
    assert "trino" in nobody.error["message"]
    unknown = terminal.ask("export", "spark-submit", "sale", "--project", project, "--json")
    assert (unknown.status, unknown.error["remedy"]) == (2, "Did you mean sales?")
