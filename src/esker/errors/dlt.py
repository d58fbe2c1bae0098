"""dlt, as a source and as one who hands data over."""

from __future__ import annotations

from collections.abc import Sequence

from esker.errors.contracts import ContractError
from esker.errors.ledger import LedgerError
from esker.errors.project import ProjectError
from esker.errors.sources import SourceError


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
