"""The state database: what is *about* work, such as run history and leases.

It never decides what is in a table. Losing it loses history and convenience, not correctness.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import SQLAlchemyError

from esker.errors import StateError, StateTooNew
from esker.project import Project

VERSION = 3
_MAKING = 0x45534B4552  # the lock's number spells ESKER
_schema = sa.MetaData()

meta = sa.Table("esker_state", _schema, sa.Column("version", sa.Integer, nullable=False))
runs = sa.Table(
    "esker_runs",
    _schema,
    sa.Column("run_id", sa.String(36), primary_key=True),
    sa.Column("project", sa.String(127), nullable=False),
    sa.Column("pipeline", sa.String(63), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("started_at", sa.String(32), nullable=False),
    sa.Column("finished_at", sa.String(32)),
    sa.Column("result", sa.Text),
    sa.Column("error", sa.Text),
    sa.Column("process", sa.String(200), nullable=False),
    sa.Index("esker_runs_by_pipeline", "project", "pipeline", "started_at"),
    sa.Index("esker_runs_by_status", "project", "pipeline", "status", "started_at"),
)
leases = sa.Table(
    "esker_leases",
    _schema,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("holder", sa.String(36), nullable=False),
    sa.Column("process", sa.String(200), nullable=False),
    sa.Column("until", sa.String(32), nullable=False),
)
remembered = sa.Table(
    "esker_remembered",
    _schema,
    sa.Column("project", sa.String(127), primary_key=True),
    sa.Column("pipeline", sa.String(63), primary_key=True),
    sa.Column("entry", sa.String(64), nullable=False),
    sa.Column("position", sa.Text, nullable=False),
)
checked = sa.Table(
    "esker_checked",
    _schema,
    sa.Column("project", sa.String(127), primary_key=True),
    sa.Column("pipeline", sa.String(63), primary_key=True),
    sa.Column("what", sa.String(16), primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False),
)
holds = sa.Table(
    "esker_holds",
    _schema,
    sa.Column("project", sa.String(127), primary_key=True),
    sa.Column("pipeline", sa.String(63), primary_key=True),
    sa.Column("run_id", sa.String(36), nullable=False),
    sa.Column("entry", sa.String(64), nullable=False),
    sa.Column("position", sa.Text, nullable=False),
    sa.Column("tripped", sa.Text, nullable=False),
    sa.Column("span", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("held_at", sa.String(32), nullable=False),
)
windows = sa.Table(
    "esker_windows",
    _schema,
    sa.Column("project", sa.String(127), primary_key=True),
    sa.Column("pipeline", sa.String(63), primary_key=True),
    sa.Column("start", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("end", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("error", sa.Text, nullable=False),
    sa.Column("tried_at", sa.String(32), nullable=False),
)
cursor_marks = sa.Table(
    "esker_cursor_marks",
    _schema,
    sa.Column("project", sa.String(127), primary_key=True),
    sa.Column("pipeline", sa.String(63), primary_key=True),
    sa.Column("source", sa.String(64), nullable=False),
    sa.Column("marks", sa.Text, nullable=False),
)
found_tables = sa.Table(
    "esker_found_tables",
    _schema,
    sa.Column("project", sa.String(127), primary_key=True),
    sa.Column("family", sa.String(63), primary_key=True),
    sa.Column("schema", sa.String(255), primary_key=True),
    sa.Column("name", sa.String(255), primary_key=True),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("is_gone", sa.Boolean, nullable=False),
)
offsets = sa.Table(
    "esker_offsets",
    _schema,
    sa.Column("project", sa.String(127), primary_key=True),
    sa.Column("consumer", sa.String(63), primary_key=True),
    sa.Column("offset", sa.Text, nullable=False),
    sa.Column("stored_at", sa.String(32), nullable=False),
)
deliveries = sa.Table(
    "esker_deliveries",
    _schema,
    sa.Column("project", sa.String(127), primary_key=True),
    sa.Column("consumer", sa.String(63), primary_key=True),
    sa.Column("result", sa.Text, nullable=False),
    sa.Column("ended_at", sa.String(32), nullable=False),
)
reindexes = sa.Table(
    "esker_reindexes",
    _schema,
    sa.Column("project", sa.String(127), primary_key=True),
    sa.Column("consumer", sa.String(63), primary_key=True),
    sa.Column("plan", sa.Text, nullable=False),
    sa.Column("begun_at", sa.String(32), nullable=False),
)
reindex_tasks = sa.Table(
    "esker_reindex_tasks",
    _schema,
    sa.Column("project", sa.String(127), primary_key=True),
    sa.Column("consumer", sa.String(63), primary_key=True),
    sa.Column("plan_id", sa.String(36), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("counts", sa.Text, nullable=False),
    sa.Column("done_at", sa.String(32), nullable=False),
)


class State:
    """A connection to the state database. `State.open` makes or upgrades it."""

    def __init__(self, engine: sa.Engine, shown_as: str) -> None:
        self._engine = engine
        self._shown_as = shown_as

    @classmethod
    def open(cls, project: Project) -> State:
        """Open the project's state database, or raise StateError or StateTooNew."""
        shown = project.state.url
        try:
            url = _url(project)
            shown = url.render_as_string(hide_password=True)
            engine = sa.create_engine(url, connect_args=_patience(url))
        except (SQLAlchemyError, ImportError, OSError, ValueError) as error:
            raise StateError(shown, _why(error)) from error
        if url.get_backend_name() == "sqlite":
            sa.event.listen(engine, "connect", _tune_sqlite)
            sa.event.listen(engine, "begin", _lock_sqlite)
        state = cls(engine, shown)
        try:
            state._make(url, shown)
        except BaseException:
            state.close()
            raise
        return state

    def _make(self, url: URL, shown: str) -> None:
        """Make the tables, or find out that a newer Esker has made them."""
        with self.begin() as connection:
            if url.get_backend_name() == "postgresql":
                # Two first runs at once: CREATE TABLE IF NOT EXISTS alone collides there.
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MAKING)))
            _schema.create_all(connection)
            found = connection.execute(sa.select(meta.c.version)).scalar()
            if found is None:
                connection.execute(meta.insert().values(version=VERSION))
            elif found > VERSION:
                raise StateTooNew(shown, found, VERSION)
            elif found < VERSION:
                _upgrade(connection, found)

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        """Run a transaction; what the database refuses becomes a StateError."""
        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise StateError(self._shown_as, _why(error)) from error

    def now(self) -> datetime:
        """Return the time by the database's clock, which all its users share."""
        if self._engine.dialect.name == "sqlite":
            return datetime.now(UTC)
        with self.begin() as connection:
            found = connection.execute(sa.select(sa.func.now())).scalar_one()
        assert isinstance(found, datetime)
        return found.astimezone(UTC)

    @property
    def is_file(self) -> bool:
        """It is a file of this machine: others do not see what stands in it."""
        return self._engine.dialect.name == "sqlite"

    def close(self) -> None:
        """Give back every connection."""
        self._engine.dispose()


def _upgrade(connection: sa.Connection, found: int) -> None:
    """Bring a database of an earlier version to this one. Tables that it lacks have been made."""
    if found == 1:
        # Holds said nothing of the guard that was tripped. The next run of a pipeline holds its batch anew.
        holds.drop(connection)
        holds.create(connection)
    connection.execute(meta.update().values(version=VERSION))


def text_of(moment: datetime) -> str:
    """Return a moment as the text that is stored: it sorts like the moment."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment_of(text: str) -> datetime:
    """Return a stored text as a moment."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


def _url(project: Project) -> URL:
    settings = project.state
    url = make_url(settings.url)
    if url.get_backend_name() == "sqlite":
        path = project.path(url.database or "")
        path.parent.mkdir(parents=True, exist_ok=True)
        return url.set(database=str(path))
    return url.set(
        drivername="postgresql+psycopg",
        username=settings.user,
        password=settings.password.get_secret_value() if settings.password else None,
    )


def _patience(url: URL) -> dict[str, int]:
    """A database server that does not answer is given up after ten seconds."""
    return {"connect_timeout": 10} if url.get_backend_name() == "postgresql" else {}


def _tune_sqlite(connection: sa.engine.interfaces.DBAPIConnection, record: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA busy_timeout=30000")
    cursor.execute("PRAGMA journal_mode=WAL")
    # A power cut may take the last entries of the history; what decides about a table is in the table.
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()
    # Python's driver would begin transactions only before the first write; see _lock_sqlite.
    connection.isolation_level = None


def _lock_sqlite(connection: sa.Connection) -> None:
    # Whoever reads first and writes then must hold the lock from the start: otherwise two processes
    # that make the same database, or take the same lease, fail with "database is locked".
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _why(error: Exception) -> str:
    original = getattr(error, "orig", None) or error
    if isinstance(original, ImportError):
        return "PostgreSQL needs the extra: pip install 'esker[postgres]'"
    return str(original).strip().splitlines()[0]
