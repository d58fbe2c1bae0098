"""The state database: made when needed, refused when it cannot be trusted."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from esker.errors import StateError, StateTooNew
from esker.ledger.state import VERSION, State, holds, meta, moment_of, text_of
from esker.project import Project
from tests.ledger.states import project_in


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return project_in(tmp_path)


@pytest.fixture
def state(project: Project) -> Iterator[State]:
    with closing(State.open(project)) as opened:
        yield opened


def test_the_database_is_made_where_the_project_says(tmp_path: Path) -> None:
    """The folder and the file are made by the first use."""
    project = project_in(tmp_path, "sqlite:///deep/below/state.db")
    State.open(project).close()
    assert (tmp_path / "deep" / "below" / "state.db").is_file()


def test_opening_again_finds_the_same_database(project: Project) -> None:
    """The version is written once."""
    for _ in range(3):
        with closing(State.open(project)) as state, state.begin() as connection:
            assert connection.execute(sa.select(meta.c.version)).all() == [(VERSION,)]


def test_database_of_an_older_version_is_upgraded(project: Project, tmp_path: Path) -> None:
    """Its holds go, because they do not say what they wait for; the history stays."""
    State.open(project).close()
    with closing(sqlite3.connect(next(tmp_path.rglob("state.db")))) as database:
        database.executescript("""
            DROP TABLE esker_holds;
            CREATE TABLE esker_holds (project TEXT, pipeline TEXT, deletes INTEGER);
            INSERT INTO esker_runs (run_id, project, pipeline, status, started_at, process)
                VALUES ('r', 'p', 'sales', 'succeeded', '2026-01-01T00:00:00.000000Z', 'host 1 1');
            UPDATE esker_state SET version = 1;""")
    for _ in range(2):
        with closing(State.open(project)) as state, state.begin() as connection:
            assert connection.execute(sa.select(meta.c.version)).all() == [(VERSION,)]
            assert connection.execute(sa.select(holds)).all() == []
            assert connection.execute(sa.text("SELECT run_id FROM esker_runs")).all() == [("r",)]


def test_a_failed_transaction_leaves_nothing(state: State) -> None:
    """What stands in one block is written together or not at all."""

    def fail() -> None:
        with state.begin() as connection:
            connection.execute(meta.delete())
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    with state.begin() as connection:
        assert connection.execute(sa.select(meta.c.version)).all() == [(VERSION,)]


def test_a_newer_database_is_refused(project: Project) -> None:
    """A database that a newer Esker has upgraded is not written by this one."""
    with closing(State.open(project)) as state, state.begin() as connection:
        connection.execute(meta.update().values(version=99))
    with pytest.raises(StateTooNew, match=f"has version 99, this Esker knows {VERSION}") as caught:
        State.open(project)
    assert caught.value.exit_status == 2
    assert "Install that version" in caught.value.remedy


def test_a_file_that_is_no_database_is_refused(tmp_path: Path, project: Project) -> None:
    """A damaged file is named, with the reassurance that it may be replaced; it is not overwritten."""
    file = tmp_path / ".esker" / "state.db"
    file.parent.mkdir()
    file.write_bytes(b"this is no database " * 100)
    with pytest.raises(StateError, match=r"state\.db") as caught:
        State.open(project)
    assert "file is not a database" in caught.value.reason
    assert "replaced by an empty one without harm" in caught.value.remedy
    assert file.read_bytes().startswith(b"this is no database")


def test_a_database_of_somebody_else_is_an_error(tmp_path: Path, project: Project) -> None:
    """A table of our name with other columns is told as an error of the state database."""
    (tmp_path / ".esker").mkdir()
    with closing(sqlite3.connect(tmp_path / ".esker" / "state.db")) as other:
        other.execute("create table esker_state (something text)")
    with pytest.raises(StateError, match="cannot be used"):
        State.open(project)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("sqlite:///file/state.db", "File exists"),
        ("sqlite:///file/below/state.db", "Not a directory"),
        ("sqlite:///folder", "unable to open database file"),
        ("postgresql://host:port/state", "port"),
    ],
)
def test_a_place_that_cannot_be_used_is_told(tmp_path: Path, url: str, reason: str) -> None:
    """Wrong paths and addresses end as errors with a remedy, never as a stack trace."""
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StateError, match="cannot be used") as caught:
        State.open(project_in(tmp_path, url))
    assert reason in caught.value.reason
    assert caught.value.remedy
    assert caught.value.exit_status == 4


MOMENTS = st.datetimes(datetime(1970, 1, 2), datetime(9998, 1, 1)).flatmap(
    lambda moment: st.integers(-14, 14).map(
        lambda hours: moment.replace(tzinfo=timezone(timedelta(hours=hours)))
    )
)


@given(MOMENTS, MOMENTS)
def test_stored_moments_come_back_and_sort(one: datetime, other: datetime) -> None:
    """Text in the database is as good as the moment: nothing is lost, and order is kept."""
    assert moment_of(text_of(one)) == one
    assert (text_of(one) < text_of(other)) == (one < other)


def test_the_clock_has_a_zone(state: State) -> None:
    """Times are compared in UTC."""
    assert abs(state.now() - datetime.now(UTC)) < timedelta(minutes=1)
