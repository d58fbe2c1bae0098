"""What went wrong in Spark, Java or a store, as one of Esker's errors.

Spark wraps causes in causes. Here the chain is unrolled once, and the few causes that a person can act
on are told apart; everything else names the log that has the whole story.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import AnalysisException, ParseException, PySparkException

from esker.errors import (
    CatalogUnreachable,
    ClusterUnreachable,
    DiskFull,
    EskerError,
    ExpressionFailed,
    OutOfMemory,
    RowsLost,
    SourceUnavailable,
    SourceUnreadable,
    SparkFailed,
    StoreNotDeclared,
    StoreNotWritable,
    StoreUnreachable,
)
from esker.project.secrets import redact

JvmFailure = (Py4JError, PySparkException, ConnectionError)
"""Everything that a call into the JVM may raise."""

_OUT_OF_MEMORY = "OutOfMemoryError"
_TAIL = 100_000
"""Bytes of the log in which the reason of Java's end stands."""
_FILE = re.compile(
    r"(?:reading (?:the )?file|for file|file path)[: ]+'?(?:file:)?(/[^\s'\"]+)", re.IGNORECASE
)

SQL_MISTAKES = (AnalysisException, ParseException)
"""What Spark says of SQL that it does not understand."""
_OF_EXPRESSIONS = (
    "SparkArithmeticException",
    "SparkNumberFormatException",
    "SparkDateTimeException",
    "SparkArrayIndexOutOfBoundsException",
    "SparkRuntimeException",
)
"""What expressions of SQL raise for values that they have no result for."""
_PLACE = re.compile(r"\bline (\d+),? pos (\d+)\b")
_SQL_FAILURE = re.compile(r"P?SQL\w*Exception")
"""What drivers of databases raise."""


@dataclass(frozen=True)
class Cause:
    """One link of a chain of Java exceptions."""

    kind: str
    message: str


def causes(error: BaseException) -> list[Cause]:
    """Return the chain of causes of a failed call, outermost first."""
    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if isinstance(java, Py4JJavaError):
        java = java.java_exception
    chain: list[Cause] = []
    while java is not None and len(chain) < 20:
        chain.append(Cause(str(java.getClass().getSimpleName()), redact(str(java.getMessage() or ""))))
        java = java.getCause()
    return chain or [Cause(type(error).__name__, redact(str(error)))]


def explain(
    error: BaseException,
    log: Path,
    *,
    what: str = "Spark failed",
    master: str = "",
    reads_source: bool = False,
) -> EskerError:
    """Return the error of Esker's that says best what happened.

    Only what reads a source may blame a file on it; elsewhere a missing file is the table's own.
    """
    if isinstance(error, EskerError):
        return error
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return _ended(what, log)
    try:
        chain = causes(error)
    except JvmFailure:
        # Java raised it and ended, before anybody could ask what it was.
        return _ended(what, log)
    text = "\n".join(f"{cause.kind}: {cause.message}" for cause in chain)
    last = chain[-1]
    words = first_line(last.message) or last.kind
    if told := _of_database(chain):
        return SourceUnavailable("the source's database", told, 1)
    known: tuple[tuple[str, Callable[[], EskerError]], ...] = (
        ("Checkpoint block rdd_", RowsLost),
        ("No space left on device", lambda: DiskFull("No space left on device.")),
        ("Disk quota exceeded", lambda: DiskFull("Disk quota exceeded.")),
        (_OUT_OF_MEMORY, lambda: OutOfMemory(words, str(log))),
        ("All masters are unresponsive", lambda: ClusterUnreachable(master, words, str(log))),
        ("methods on a stopped SparkContext", lambda: _stopped(what, master, log)),
        ("Master removed our application", lambda: ClusterUnreachable(master, words, str(log))),
        ("is not writable", lambda: StoreNotWritable(_path(text), words)),
        ("Mkdirs failed to create", lambda: StoreNotWritable(_path(text), words)),
        ("UncheckedSQLException", lambda: CatalogUnreachable(None, words)),
        ("software/amazon/awssdk", StoreNotDeclared),
        ("com/google/cloud", StoreNotDeclared),
        ("com/azure/", StoreNotDeclared),
        ("GlueException", lambda: CatalogUnreachable(None, words)),
        ("NessieServiceException", lambda: CatalogUnreachable(None, words)),
        ("HttpClientException", lambda: CatalogUnreachable(None, words)),
        ("TTransportException", lambda: CatalogUnreachable(None, words)),
        ("S3Exception", lambda: StoreUnreachable("the project", words)),
        ("SdkClientException", lambda: StoreUnreachable("the project", words)),
        ("StorageException", lambda: StoreUnreachable("the project", words)),
        ("RESTException", lambda: CatalogUnreachable(None, words)),
        ("NotAuthorizedException", lambda: CatalogUnreachable(None, words)),
        ("ForbiddenException", lambda: CatalogUnreachable(None, words)),
        ("ServiceFailureException", lambda: CatalogUnreachable(None, words)),
        ("ServiceUnavailableException", lambda: CatalogUnreachable(None, words)),
        ("ConnectException", lambda: CatalogUnreachable(None, words)),
    )
    for needle, build in known:
        if needle in text:
            return build()
    if "Permission denied" in text and not reads_source:
        return StoreNotWritable(_path(text), words)
    found = _FILE.search(text)
    if reads_source and found and "/metadata/" not in found[1]:
        return SourceUnreadable(re.sub("^/+", "/", found[1]).rstrip(".,)"), words)
    if last.kind in _OF_EXPRESSIONS:
        return ExpressionFailed(what, words)
    return SparkFailed(what, f"{last.kind}: {words}", str(log))


@contextmanager
def explained(what: str, log: Path, *, master: str = "", reads_source: bool = False) -> Iterator[None]:
    """Raise what happens inside as one of Esker's errors."""
    try:
        yield
    except JvmFailure as error:
        if _interrupted(error):
            raise KeyboardInterrupt from None
        raise explain(error, log, what=what, master=master, reads_source=reads_source) from error


def first_line(text: str) -> str:
    """Return the first line of a message, without Spark's error class in front and SQLSTATE behind."""
    line = text.strip().splitlines()[0] if text.strip() else ""
    return re.sub(r"\s*SQLSTATE: \w{5}\b.*$", "", re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", line))


def place_of(error: PySparkException) -> tuple[int, int] | None:
    """Return line and column, from 1, that an error of Spark's speaks of."""
    found = _PLACE.search(str(error))
    return (int(found[1]), int(found[2]) + 1) if found else None


def said_of_sql(error: PySparkException) -> str:
    """Return what Spark says of a statement that it does not understand, in a line."""
    return first_line(str(error))


def _of_database(chain: list[Cause]) -> str | None:
    """Return what a source's database said; None where the failure is another's, such as a catalog's."""
    if any(cause.kind == "UncheckedSQLException" for cause in chain):
        return None
    told = [cause.message for cause in chain if _SQL_FAILURE.fullmatch(cause.kind)]
    return first_line(told[-1]) if told else None


def _ended(what: str, log: Path) -> EskerError:
    if _OUT_OF_MEMORY in _tail(log):
        return OutOfMemory("Java ended for want of memory", str(log))
    return SparkFailed(what, "Java ended unexpectedly (killed, or out of memory?).", str(log))


def _tail(log: Path) -> str:
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - _TAIL))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""


def _stopped(what: str, master: str, log: Path) -> EskerError:
    if master and not master.startswith("local"):
        return ClusterUnreachable(master, "It did not register the application.", str(log))
    return SparkFailed(what, "Spark was stopped.", str(log))


def _path(text: str) -> str:
    found = re.search(r"(?:file:)?(/[^\s:'\"]+)", text)
    return found[1] if found else "of the project"


def _interrupted(error: BaseException) -> bool:
    """True when the error arose while Ctrl-C was on its way up.

    Py4J closes the connection of the call that was broken, so what `finally` still asks of Java may
    fail. That failure must not hide what really happened.
    """
    context = error.__context__
    while context is not None and not isinstance(context, KeyboardInterrupt):
        context = context.__context__
    return context is not None
