"""The project file, and the way that it was called: exit status 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from esker.errors.root import EskerError, Problem


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


class CannotExport(ProjectError):
    """Another program cannot use what the project declares. Nothing was written."""

    code = "ESK-PROJECT-030"

    def __init__(self, target: str, why: str) -> None:
        super().__init__(
            f"nothing can be exported for {target}",
            reason=why[0].upper() + why[1:] + ".",
            remedy="Read the tables with another program: esker export --help",
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


class NoQuality(ProjectError):
    """A table has no quality history."""

    code = "ESK-PROJECT-017"

    def __init__(self, table: str) -> None:
        super().__init__(
            f'table "{table}" has no quality history',
            reason="Nothing has been published to it yet.",
            remedy="Run its pipeline: esker run",
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
