"""The example with two catalogues: every row, count and work, worked out from what the servers hold."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import stamina
from examples.catalogue import run as example
from examples.catalogue.servers.calm import CalmRecord
from examples.catalogue.servers.serving import Request

import esker
from esker.load.counts import RowCounts
from esker.pipeline.api import OpenProject
from tests.folder import SPARK
from tests.servers.search import SearchServer
from tests.servers.waiting import wait_until

pytestmark = pytest.mark.spark
Row = dict[str, Any]
SOON = example.EVERY + timedelta(minutes=1)
"""Until when a change is found: the windows of the example have no lag."""


@dataclass
class Model:
    """A table in plain Python: the content of each id, and whether it is deleted."""

    rows: dict[str, Row] = field(default_factory=dict)
    gone: dict[str, datetime] = field(default_factory=dict)
    seen: dict[str, datetime] = field(default_factory=dict)
    """When each id was last changed."""

    def take(self, source: Mapping[str, tuple[datetime, Row | None]]) -> RowCounts:
        """Take over what changed in a source; return what must become of it. None is a delete."""
        counts: Counter[str] = Counter()
        for id, (changed, content) in source.items():
            if self.seen.get(id) == changed:
                continue
            self.seen[id] = changed
            counts["read"] += 1
            if content is None:
                counts["deleted"] += 1
                self.gone[id] = changed
            elif id in self.gone:
                counts["undeleted"] += 1
                del self.gone[id]
                self.rows[id] = content
            else:
                same = "unchanged" if self.rows.get(id) == content else "updated"
                counts[same if id in self.rows else "inserted"] += 1
                self.rows[id] = content
        return RowCounts(**counts)


@pytest.fixture
def sources() -> Iterator[example.Sources]:
    with example.running() as sources, stamina.set_testing(True, attempts=2):
        yield sources


@pytest.fixture
def folder(tmp_path: Path, spark_running: None, sources: example.Sources) -> Path:
    """The example's project, in the Spark of the tests."""
    return make_project(tmp_path / "catalogue", sources)


def make_project(folder: Path, sources: example.Sources, search: str | None = None) -> Path:
    example.make_project(folder, sources, search)
    with (folder / "esker.yml").open("a", encoding="utf-8") as stream:
        stream.write(f"\nspark: {json.dumps(SPARK)}\n")
    return folder


def test_catalogue(folder: Path, sources: example.Sources) -> None:
    """Records are loaded, changed, deleted, brought back; a window that fails is a gap until it is read."""
    project = esker.open(folder)
    calm, sierra = Model(), Model()
    sources.fill()

    def load() -> dict[str, RowCounts]:
        report = project.run_all()
        assert [result.error for result in report.pipelines] == [None, None]
        return {result.pipeline: result.rows for result in report.pipelines}

    first = calm.take(archives(sources))
    found = load()
    # The record without an id of its own is in the quarantine, and counts apart.
    assert found["calm"] == RowCounts(read=61, inserted=60, quarantined=1)
    assert (first.read, first.inserted) == (60, 60)
    assert found["sierra"] == sierra.take(books(sources)) == RowCounts(read=40, inserted=40)
    check(project, calm, sierra)
    check_layout(project)

    sources.change()
    example.let_windows_pass()
    expected = {"calm": calm.take(archives(sources)), "sierra": sierra.take(books(sources))}
    assert expected == {
        "calm": RowCounts(read=10, inserted=1, updated=5, deleted=3, unchanged=1),
        "sierra": RowCounts(read=6, inserted=1, updated=3, deleted=2),
    }
    assert load() == expected
    check(project, calm, sierra)
    check_changes(project)

    sources.bring_back()
    sources.sierra.broken.add("b1010")
    example.let_windows_pass()
    report = {result.pipeline: result for result in project.run_all().pipelines}
    assert report["calm"].rows == calm.take(archives(sources)) == RowCounts(read=1, undeleted=1)
    assert report["sierra"].status == "failed"
    assert report["sierra"].rows == RowCounts()
    check(project, calm, sierra)
    # Time goes on: windows that are due by now are missing.
    (failed,) = [line for line in project.windows("sierra") if line.status not in ("covered", "missing")]
    assert failed.status == "failed"
    changed = datetime.fromisoformat(sources.sierra.records["b1010"]["updatedDate"])
    assert failed.since <= changed < failed.until

    sources.sierra.broken.clear()
    again = load()
    assert again["sierra"] == sierra.take(books(sources)) == RowCounts(read=1, undeleted=1)
    assert again["calm"] == RowCounts()
    check(project, calm, sierra)
    covered = project.windows("sierra")[0]
    assert (covered.status, covered.since) == ("covered", sources.start)
    assert covered.until > changed
    assert sources.sierra.secret not in (folder / "esker.yml").read_text(encoding="utf-8")

    # Without a search server, works are files.
    delivered = {result.consumer: result for result in project.deliver_all().consumers}
    assert {result.status for result in delivered.values()} == {"succeeded"}
    assert {name: works_in(folder / "works" / name) for name in example.INDICES} == works(sources)


@pytest.mark.server
def test_from_the_harvest_to_a_search_hit(
    tmp_path: Path, sources: example.Sources, opensearch: SearchServer, spark_running: None
) -> None:
    """Works are found as the sources have them, a change soon after it; also in an index filled anew."""
    folder = make_project(tmp_path / "catalogue", sources, opensearch.address)
    project = esker.open(folder, example.SEARCH)
    sources.fill()
    leave_a_work(opensearch)
    project.run_all()
    for name in example.INDICES:
        assert project.reindex(name).status == "succeeded"
    check_index(opensearch, sources)
    assert search(opensearch, "herbal")
    assert search(opensearch, "letters")
    assert not search(opensearch, "corrected")

    changed_at = time.monotonic()
    sources.change()
    example.let_windows_pass()
    refresh(project)
    wait_until(lambda: len(search(opensearch, "corrected")) == 4, "a search that finds what changed", 5)
    assert timedelta(seconds=time.monotonic() - changed_at) < SOON
    check_index(opensearch, sources)
    found = set(opensearch.documents("archives")) | set(opensearch.documents("books"))
    deleted = {"calm-0040", "calm-0041", "calm-0042", "b1010", "b1011"}
    suppressed = {"calm-0019", "b1009"}
    assert not found & (deleted | suppressed)
    assert {"calm-0009", "calm-0900", "b1007", "b2000"} <= found  # published, added, known by now

    sources.bring_back()
    example.let_windows_pass()
    refresh(project)
    check_index(opensearch, sources)
    before = {name: opensearch.behind(name) for name in example.INDICES}
    hits = search(opensearch, "corrected")
    for name in example.INDICES:
        result = project.reindex(name, into=f"{name}-anew")
        assert (result.status, result.dead, result.rows.dead) == ("succeeded", 0, 0)
    after = {name: opensearch.behind(name) for name in example.INDICES}
    assert after == {name: [f"{name}-anew"] for name in example.INDICES}
    assert not any(before[name] == after[name] for name in example.INDICES)
    check_index(opensearch, sources)
    assert search(opensearch, "corrected") == hits

    # Deliveries follow the alias.
    sources.calm.put("calm-0003", {**example.archive(3), "Title": ["Anatomy"]}, example.this_second())
    example.let_windows_pass()
    refresh(project)
    check_index(opensearch, sources)
    assert example.search_works(opensearch.address, "anatomy") == ["Anatomy"]


def leave_a_work(server: SearchServer) -> None:
    """Let the server have an index of an earlier project, whose changesets had higher numbers."""
    server.ask("PUT", "/archives-000001", {"aliases": {"archives": {}}})
    place = "/archives-000001/_doc/calm-0003?version=99&version_type=external"
    server.ask("PUT", place, {"title": "Letters that an earlier project had corrected"})


def refresh(project: OpenProject) -> None:
    """Load what is new in the sources, and deliver it."""
    assert {result.status for result in project.run_all().pipelines} == {"succeeded"}
    report = project.deliver_all()
    assert {(result.status, result.dead) for result in report.consumers} == {("succeeded", 0)}


def search(server: SearchServer, words: str) -> set[str]:
    """Return the ids that a search finds, as the server shows them by itself."""
    body = {"query": {"match": {"title": words}}, "size": 1_000}
    found = server.ask("POST", f"/{','.join(example.INDICES)}/_search", body)
    return {hit["_id"] for hit in found["hits"]["hits"]}


def check_index(server: SearchServer, sources: example.Sources) -> None:
    """Both indices hold exactly the works that the sources have."""
    assert {name: server.documents(name) for name in example.INDICES} == works(sources)


def works_in(folder: Path) -> dict[str, Row]:
    """Return the works that files of changes lead to."""
    changes = [json.loads(line) for file in folder.iterdir() for line in file.read_text("utf-8").splitlines()]
    changes.sort(key=lambda change: change["version"])
    newest = {change["id"]: change.get("body") for change in changes}
    return {id: body for id, body in newest.items() if body is not None}


def works(sources: example.Sources) -> dict[str, dict[str, Row]]:
    """Return the works that both sources have, by consumer."""
    calm = {id: _work_of_archive(record) for id, record in sources.calm.records.items() if id != "calm-torn"}
    sierra = {id: _work_of_book(record) for id, record in sources.sierra.records.items()}
    return {
        "archives": {id: work for id, work in calm.items() if work is not None},
        "books": {id: work for id, work in sierra.items() if work is not None},
    }


def _work_of_archive(record: CalmRecord) -> Row | None:
    if record.is_deleted or not record.is_published:
        return None
    fields = record.fields
    return {
        "catalogue": "calm",
        "title": fields["Title"][0],
        "reference": fields["RefNo"][0],
        "level": fields["Level"][0],
        "dates": list(fields["Date"]),
        "year": int(fields["Date"][0]),
        "creators": list(fields["CreatorName"]),
        "languages": list(fields["Language"]),
        "description": fields["Description"][0].strip().replace("\n ", ""),
    }


def _work_of_book(record: Row) -> Row | None:
    bib = record.get("bib")
    if record["deleted"] or bib is None or bib["suppressed"]:
        return None
    return {
        "catalogue": "sierra",
        "title": bib["title"],
        "reference": bib["id"],
        "level": "Book",
        "dates": [str(bib["publishYear"])],
        "year": bib["publishYear"],
        "creators": [bib["author"]],
        "languages": ["English"],
        "copies": len(record["items"]),
        "available": len([item for item in record["items"] if item["status"] == "available"]),
    }


def test_the_servers_ask_who_is_there(sources: example.Sources) -> None:
    """Without a token, or with a wrong secret, Sierra gives nothing; a resumption token counts once."""
    query = {"updatedDate": "[2026-01-01T00:00:00Z,2027-01-01T00:00:00Z]", "offset": "0", "limit": "1"}
    assert sources.sierra.answer(Request("/v6/bibs", query, {}))[0] == 401
    wrong = {"Authorization": "Basic ZXNrZXI6d3Jvbmc="}
    assert sources.sierra.answer(Request("/v6/token", {}, wrong, is_post=True))[0] == 401
    sources.fill()
    page = sources.calm.answer(Request("/oai", {"verb": "ListRecords", "metadataPrefix": "calm"}, {}))[2]
    token = page.decode().partition("<resumptionToken>")[2].partition("<")[0]
    more = Request("/oai", {"verb": "ListRecords", "resumptionToken": token}, {})
    assert b"<record>" in sources.calm.answer(more)[2]
    assert b"badResumptionToken" in sources.calm.answer(more)[2]


def archives(sources: example.Sources) -> dict[str, tuple[datetime, Row | None]]:
    """Return what CALM holds, as the table should."""
    records = {id: record for id, record in sources.calm.records.items() if id != "calm-torn"}
    return {id: (record.changed, _archive(record)) for id, record in records.items()}


def _archive(record: CalmRecord) -> Row | None:
    if record.is_deleted:
        return None
    fields = {name: list(values) for name, values in record.fields.items() if values}
    return {"data": fields, "published": record.is_published}


def books(sources: example.Sources) -> dict[str, tuple[datetime, Row | None]]:
    """Return what Sierra holds, as the table should."""
    return {
        id: (datetime.fromisoformat(record["updatedDate"]), None if record["deleted"] else _book(record))
        for id, record in sources.sierra.records.items()
    }


def _book(record: Row) -> Row:
    bib = record.get("bib")
    return {
        "maybe_bib_record": bib and {"id": bib["id"], "data": bib, "modified_date": _moment(bib)},
        **{f"{kind}_records": _parts(record[f"{kind}s"]) for kind in ("item", "order")},
        "holdings_records": _parts(record["holdings"]),
    }


def _parts(parts: list[Row]) -> dict[str, Row]:
    return {
        part["id"]: {
            "id": part["id"],
            "data": part,
            "modified_date": _moment(part),
            "bib_ids": part["bibIds"],
            "unlinked_bib_ids": part.get("unlinkedBibIds"),
        }
        for part in parts
    }


def _moment(part: Row) -> datetime:
    return datetime.fromisoformat(part["updatedDate"])


def check(project: OpenProject, calm: Model, sierra: Model) -> None:
    """Both tables hold exactly what the models do. A deleted record keeps its content, marked."""
    found = {row.id: row for row in project.table("catalogue.calm").collect()}
    assert {id for id, row in found.items() if row.deleted} == set(calm.gone)
    assert {id: _aware(row.retrieved_at) for id, row in found.items()} == calm.seen
    assert {
        id: {
            "data": {name: values for name, values in row.data.asDict().items() if values is not None},
            "published": row.published,
        }
        for id, row in found.items()
    } == calm.rows

    stored = {row.id: row.asDict(recursive=True) for row in project.table("catalogue.sierra").collect()}
    assert {id for id, row in stored.items() if row["deleted"]} == set(sierra.gone)
    assert {id: _aware(row["modified_time"]) for id, row in stored.items()} == sierra.seen
    kinds = ("item_records", "holdings_records", "order_records")
    assert {
        id: {
            "maybe_bib_record": row["maybe_bib_record"] and _read(row["maybe_bib_record"]),
            **{kind: {part: _read(value) for part, value in row[kind].items()} for kind in kinds},
        }
        for id, row in stored.items()
    } == sierra.rows


def _read(stored: Row) -> Row:
    return {
        **stored,
        "data": json.loads(stored["data"]),
        "modified_date": _aware(stored["modified_date"]),
    }


def _aware(moment: datetime) -> datetime:
    """Return a moment as Spark's session has it: in UTC."""
    return moment.replace(tzinfo=UTC)


def check_layout(project: OpenProject) -> None:
    """Both tables are identified by id and kept in a hundred buckets; CALM has its 92 fields."""
    for table in ("catalogue.calm", "catalogue.sierra"):
        known = project.metadata(table)
        assert tuple(known.key) == ("id",)
        shown = project.sql(f"DESCRIBE TABLE EXTENDED lake.{table}").show().rows
        assert any("bucket(100, id)" in str(row) for row in shown)
    data = project.table("catalogue.calm").schema["data"].dataType
    assert len(data.names) == 92  # type: ignore[attr-defined]
    assert {field.dataType.simpleString() for field in data.fields} == {"array<string>"}  # type: ignore[attr-defined]
    required = [field.name for field in project.table("catalogue.sierra").schema if not field.nullable]
    assert {"id", "item_records", "holdings_records", "order_records", "modified_time"} <= set(required)
    (bad,) = project.show_quarantined("calm")
    assert bad["rules"] == ["has_a_record_id"]
    assert json.loads(bad["payload"])["id"] == "calm-torn"


def check_changes(project: OpenProject) -> None:
    """The change log tells what a search index must do, and nothing of what was only saved again."""
    told = project.read_changes("catalogue.calm", since=1, limit=100)
    assert {(row["id"], row["_esker_op"]) for row in told.rows} == {
        *((f"calm-{number:04}", "update") for number in (3, 9, 14, 15, 33)),
        *((f"calm-{number:04}", "delete") for number in (40, 41, 42)),
        ("calm-0900", "insert"),
    }
