"""Sources: what they have, and whether they can be read."""

from __future__ import annotations

from collections.abc import Sequence

from esker.errors.project import ProjectError
from esker.errors.root import SHOWN_PARTS, EskerError, Outcome, Problem


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
    outcome = Outcome.RETRY

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
        told = [f"{error.message}: {error.reason}" for error in failures[:SHOWN_PARTS]]
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


class ChangesNotFollowed(SourceError):
    """A source with `read: changes` cannot go on, or its copy could not have the table's rows."""

    code = "ESK-SOURCE-032"
    exit_status = 1

    def __init__(self, table: str, why: str, remedy: str) -> None:
        super().__init__(f'the changes of table "{table}" cannot be followed', reason=why, remedy=remedy)


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
    outcome = Outcome.REFUSED

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
