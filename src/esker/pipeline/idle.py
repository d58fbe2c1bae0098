"""Find out, without Spark, that a run has nothing to do.

Most runs of a schedule find nothing new. Such a run ends here, after a look at the table's metadata, at the
tables beside it, and at the source; each rule that decides is the one that a run with Spark follows, applied
to the same values. Whatever cannot be told for sure is left to Spark, and so is whatever is wrong: a run
without Spark never fails, and never says less.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

from esker.contracts.reference import check_reference
from esker.engine.catalogs import bind
from esker.engine.folders import make_writable
from esker.engine.iceberg.document import Document, Undecided
from esker.engine.iceberg.table_id import TableId
from esker.engine.platform import is_submitted
from esker.ledger.checked import What, is_checked, remember_checked
from esker.ledger.entry import Position
from esker.ledger.file_versions import compare
from esker.ledger.remembered import recall
from esker.ledger.settled import is_settled, logged_upto
from esker.ledger.state import State
from esker.load.standing import standing
from esker.pipeline.declared import digest_of
from esker.pipeline.planned import Observed, PipelinePlan, check_fence, planned
from esker.pipeline.tables import files_table_of, log_of, table_of
from esker.project import Project
from esker.project.contract import Contract
from esker.project.contract.model import Audit, PluggedIn, Reference
from esker.project.modes import WHOLE
from esker.project.sources import FilesSource
from esker.reading.documents import Documents
from esker.sources import Fetched, Sent
from esker.sources.files.found import FoundFile
from esker.sources.files.news import is_as_loaded, wanted
from esker.sources.files.places import place_of

_OF_A_TABLE = re.compile(r"\b(?:from|join)\b", re.IGNORECASE)


def nothing_new(project: Project, state: State, name: str) -> PipelinePlan | None:
    """Return the plan of a run that has nothing to do; None where there is more, or only Spark can tell."""
    if is_submitted():
        return None  # platforms wait for Spark, and take a program that starts none for one that failed
    try:
        return _Look(project, state, name).plan()
    except Exception:
        return None  # Spark meets it too, and has the words for it


class _Look:
    """A look at one pipeline, without Spark. Raises whatever is wrong, and Undecided."""

    def __init__(self, project: Project, state: State, name: str) -> None:
        self._project, self._state, self._name = project, state, name
        self._documents = Documents(project)
        self._pipeline, self._contract = project.pipeline(name), project.contract(name)
        self._table = table_of(project, self._pipeline)

    def plan(self) -> PipelinePlan | None:
        project, name = self._project, self._name
        if not isinstance(self._pipeline.source, FilesSource):
            return None
        check_fence(project, name, None)
        for folder in self._folders():
            make_writable(folder)
        present = self._documents.find(self._table)
        if present is None:
            return None
        check_fence(project, name, present.properties)
        fingerprint = self._pipeline.source.fingerprint
        entry, doubts = standing(present, self._table, name, fingerprint, project.project)
        if not is_settled(present, self._beside):
            return None
        if self._has_news(recall(self._state, project.state_key, name, entry)):
            return None
        self._check_contract()
        found = planned(
            project,
            name,
            Observed(present.table, entry, doubts, Fetched([]), Sent(())),
            find=self._documents.table,
            has_rows=_no_rows,
            check=_checked_before,
            unchecked=lambda contract: contract.notes,
        )
        self._check_log()
        if not found.is_empty or not self._is_checked(found):
            return None
        return found

    def _is_checked(self, found: PipelinePlan) -> bool:
        """Tell whether Spark has run the pipeline as it is declared, for a table of these columns."""
        return self._is_known("declaration", digest_of(self._project, self._name, found.columns))

    def _is_known(self, what: What, digest: str) -> bool:
        return is_checked(self._state, self._project.state_key, self._name, what, digest)

    def _folders(self) -> tuple[Path, ...]:
        return bind(self._project.catalogs()[self._table.catalog], self._project).folders

    def _beside(self, name: str) -> Document | None:
        return self._documents.find(TableId(self._table.catalog, name))

    def _has_news(self, position: Position | None) -> bool:
        """Tell whether the source has what was not loaded. Raises FileChanged, and what a store answers."""
        source = self._pipeline.source
        if not isinstance(source, FilesSource):
            raise Undecided(f"a source of type {source.type}")
        listed = place_of(self._project, self._name, source).list()
        if position is None:
            return bool(listed)
        table = files_table_of(self._project, self._pipeline)
        record = self._documents.find(table)
        if record is None:
            raise Undecided(f"there is no record {table}")
        seen = self._digest(position, record, listed)
        if self._is_known("files", seen):
            return False
        if self._differs(listed, position["batch"], record):
            return True
        remember_checked(self._state, self._project.state_key, self._name, "files", seen)
        return False

    def _differs(self, listed: Sequence[FoundFile], batch: str, record: Document) -> bool:
        """Tell whether some of the files are to be loaded after those of a batch and all before it."""
        from esker.ledger.file_record import newest, read_record  # noqa: PLC0415 (Arrow)

        source = self._pipeline.source
        assert isinstance(source, FilesSource)
        history = read_record(record, self._name)
        if history is None:
            raise Undecided(f"the record {record.id} is large")
        known = newest(history, batch, record.id)
        if self._pipeline.mode in WHOLE:
            return not is_as_loaded(listed, known)
        found = compare(known, [file.version for file in listed])
        return bool(wanted(self._name, source, listed, found))

    def _digest(self, position: Position, record: Document, listed: Sequence[FoundFile]) -> str:
        """Return a text that is another one when files, record or position are, or the declaration."""
        versions = [(file.path, file.version.size, file.version.modified) for file in listed]
        declared = self._pipeline.model_dump(mode="json")
        metadata = [record.location, record.uuid, record.current]
        text = json.dumps([declared, position, metadata, versions], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def _check_contract(self) -> None:
        """Raise unless rules that look elsewhere find there what they need, as far as this can be told."""
        for rule in self._contract.rules if self._contract is not None else ():
            if isinstance(rule, PluggedIn):
                raise Undecided(f'a rule of the engine "{rule.engine}"')
            if isinstance(rule, Reference):
                assert self._contract is not None
                table = TableId(self._table.catalog, rule.table)
                check_reference(self._contract, rule, self._documents.table(table))
        for audit in self._contract.audits if self._contract is not None else ():
            if not asks_only_its_table(audit):
                raise Undecided(f'the query of the rule "{audit.name}"')

    def _check_log(self) -> None:
        """Raise SideTableForeign for a change log that was rolled back."""
        if self._pipeline.is_keyed and self._pipeline.changes:
            log = log_of(self._project, self._table)
            opened = self._documents.find(log)
            if opened is not None:
                logged_upto(log.name, opened.uuid, opened)


def asks_only_its_table(audit: Audit) -> bool:
    """Tell whether an audit's query names no other table, for sure: what Spark said of it once holds then."""
    if audit.query is None:
        return True
    named = audit.query.count("{table}")
    if len(_OF_A_TABLE.findall(audit.query)) != named:
        return False
    # Several tables may follow one FROM.
    return all("," not in part for part in audit.query.split("{table}")[1:])


def _no_rows() -> bool:
    return False


def _checked_before(contract: Contract, columns: object) -> None:
    """Leave it at what Spark said when it took this contract for a table of these columns."""
