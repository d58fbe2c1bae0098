"""Two catalogues kept in tables: CALM from an OAI-PMH feed, Sierra from a REST API, each by windows of time.

`run.py [FOLDER]` starts both servers, makes a project (in .demo/catalogue if no folder is named), loads all
records, changes some at the source, and loads again. What changed is delivered as works: to the search
server that SEARCH_URL names, or as files. The project stays, to look at; the next time it is made anew.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

import esker
from esker.pipeline.api import OpenProject
from esker.pipeline.deliver import DeliveryReport, DeliveryResult
from esker.pipeline.result import RunReport
from examples.catalogue.servers.calm import Calm
from examples.catalogue.servers.serving import serving
from examples.catalogue.servers.sierra import Sierra, stamp

EVERY = timedelta(seconds=2)
"""How long the windows in esker.yml are."""
ARCHIVES, BOOKS = 60, 40
TABLES = {"calm": "catalogue.calm", "sierra": "catalogue.sierra"}
SEARCH = "search"
"""The environment in which works go to a search server."""
INDICES = ("archives", "books")
HOW_TO_SEARCH = """Works are files in {folder}/works. To search them, start a server and run this again:
  docker run -d -p 9200:9200 -e discovery.type=single-node -e DISABLE_SECURITY_PLUGIN=true \\
    opensearchproject/opensearch:3
  SEARCH_URL=http://localhost:9200 .venv/bin/python examples/catalogue/run.py"""


@dataclass(frozen=True)
class Sources:
    """Both systems, and where they are asked."""

    calm: Calm
    sierra: Sierra
    calm_url: str
    sierra_url: str
    start: datetime
    """Before the first record of both."""

    def fill(self) -> None:
        """Let both have records, which came one after the other."""
        for number in range(ARCHIVES):
            at = self.start + timedelta(seconds=number % 20)
            self.calm.put(f"calm-{number:04}", archive(number), at, is_published=number % 10 != 9)
        # The feed lost what was in it: nobody can tell which record it was.
        self.calm.put("calm-torn", {"Title": ["?"]}, self.start)
        for number in range(BOOKS):
            self.sierra.put(f"b{1000 + number}", self.start + timedelta(seconds=number % 20), **book(number))

    def change(self) -> None:
        """Let people work on both."""
        now = this_second()
        for number in (3, 14, 15, 33):
            changed = {**archive(number), "Title": [f"Letters, volume {number}, corrected"]}
            self.calm.put(f"calm-{number:04}", changed, now)
        self.calm.put("calm-0009", archive(9), now)  # published
        self.calm.put("calm-0020", archive(20), now)  # opened, and saved as it was
        for number in (40, 41, 42):
            self.calm.delete(f"calm-{number:04}", now)
        self.calm.put("calm-0900", {**archive(900), "Language": ["English", "Cymraeg", "አማርኛ"]}, now)
        for number in (1, 2):
            parts = book(number)
            more = [*parts["items"], item(f"i{number}900", number, "at the binder's")]
            self.sierra.put(f"b{1000 + number}", now, **{**parts, "items": more})
        self.sierra.put("b1007", now, **book(7, is_known=True))  # its bib comes after its items
        for number in (10, 11):
            self.sierra.delete(f"b{1000 + number}", now)
        self.sierra.put("b2000", now, **book(1000))

    def bring_back(self) -> None:
        """Let what was deleted come back."""
        now = this_second()
        self.calm.put("calm-0040", archive(40), now)
        self.sierra.put("b1010", now, **book(10))


def archive(number: int) -> dict[str, list[str]]:
    """Return a record of CALM. Most of its 92 fields are empty, as they are there."""
    reference = f"PP/{number // 20}/{number % 20}"
    return {
        "RecordID": [f"{number:08x}-calm"],
        "RefNo": [reference],
        "AltRefNo": [reference.replace("/", ".")],
        "Level": ["Item" if number % 20 else "Collection"],
        "Title": [f"Letters, volume {number} <draft & copy>"],
        "Date": [f"{1850 + number % 100}"],
        "CreatorName": [f"Person {number % 7}", f"Person {number % 11}"] if number % 3 else [],
        "Language": ["English"] if number % 2 else ["English", "français"],
        "Description": [f"  {number} leaves;\n  some stained. "],
    }


def book(number: int, *, is_known: bool | None = None) -> dict[str, Any]:
    """Return what Sierra has of a bib: itself, if it is known, items, holdings and orders."""
    parts: dict[str, Any] = {
        "items": [item(f"i{number}{copy:03}", number, "available") for copy in range(number % 4)],
        "holdings": [_part(f"c{number}", number, copies=number % 5)] if number % 3 == 0 else [],
        "orders": [_part(f"o{number}", number, price=12.50)] if number % 5 == 0 else [],
    }
    if is_known or (is_known is None and number % 8 != 7):
        parts["bib"] = {
            "id": f"b{1000 + number}",
            "updatedDate": "2026-10-01T09:00:00Z",
            "title": f"A “Herbal”, part {number}",
            "author": f"Herbalist {number % 5}",
            "publishYear": 1600 + number,
            "lang": {"code": "eng", "name": "English"},
            "suppressed": number % 10 == 9,
            "varFields": [{"marcTag": "245", "content": "\\"}],
        }
    return parts


def item(id: str, number: int, status: str) -> dict[str, Any]:
    return _part(id, number, status=status) | ({"unlinkedBibIds": ["b1"]} if number % 6 == 1 else {})


def _part(id: str, number: int, **more: Any) -> dict[str, Any]:
    changed = datetime(2026, 9, 1, 8, number % 60, tzinfo=UTC)
    return {"id": id, "updatedDate": stamp(changed), "bibIds": [f"b{1000 + number}"], **more}


@contextmanager
def running() -> Iterator[Sources]:
    """Start both servers, without records."""
    calm, sierra = Calm(), Sierra()
    with ExitStack() as servers:
        addresses = (servers.enter_context(serving(each.answer)) for each in (calm, sierra))
        calm_url, sierra_url = addresses
        begun = int(this_second().timestamp()) - 30
        start = datetime.fromtimestamp(begun // 2 * 2, UTC)
        yield Sources(calm, sierra, f"{calm_url}/oai", sierra_url, start)


def make_project(folder: Path, sources: Sources, search: str | None = None) -> None:
    """Make the project anew. Addresses, also that of a search server, and the secret stand in its .env."""
    if (folder / "esker.yml").exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("contracts", "sql", "transforms"):
        shutil.copytree(HERE / part, folder / part)
    shutil.copy(HERE / "esker.yml", folder)
    settings = {
        "CALM_URL": sources.calm_url,
        "SIERRA_URL": sources.sierra_url,
        "SIERRA_SECRET": sources.sierra.secret,
        "CATALOGUE_START": stamp(sources.start),
    }
    if search is not None:
        settings["SEARCH_URL"] = search
    lines = (f"{name}={value}\n" for name, value in settings.items())
    (folder / ".env").write_text("".join(lines), encoding="utf-8")


def this_second() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def let_windows_pass() -> None:
    """Wait until the window is over in which something happens now."""
    every = EVERY.total_seconds()
    time.sleep(every - time.time() % every + 0.05)


def search_works(server: str, words: str) -> list[str]:
    """Return the titles that a search for words finds in both indices, the best first."""
    place = f"{server}/{','.join(INDICES)}"
    # A second later it would show what was delivered by itself.
    _post(f"{place}/_refresh")
    query = {"multi_match": {"query": words, "fields": ["title", "description", "creators"]}}
    found = _post(f"{place}/_search", {"query": query, "size": 5})
    return [hit["_source"]["title"] for hit in found["hits"]["hits"]]


def _post(address: str, body: Any = None) -> Any:
    content = json.dumps(body or {}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(address, content, headers, method="POST")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def outcomes(rows: Any) -> dict[str, int]:
    """Return what became of the rows, without what did not happen."""
    return {name: count for name, count in asdict(rows).items() if count}


def tell(text: str) -> None:
    print(f"\n{text}", flush=True)


def tell_runs(report: RunReport) -> None:
    for result in report.pipelines:
        counts = outcomes(result.rows)
        read = counts.pop("read", 0)
        parts = " + ".join(f"{count} {name}" for name, count in counts.items()) or "nothing new"
        print(f"  {result.pipeline:7} {result.status:9} {read:3} read = {parts}", flush=True)
        if result.error is not None:
            print(f"          {result.error.message}")


def tell_deliveries(report: DeliveryReport) -> None:
    for result in report.consumers:
        tell_delivery(result)


def tell_reindexes(project: OpenProject) -> None:
    for consumer in project.project.consumers:
        tell_delivery(project.reindex(consumer))


def tell_delivery(result: DeliveryResult) -> None:
    rows = result.rows
    unwanted = f" ({rows.unwanted} not wanted)" if rows.unwanted else ""
    told = f"{rows.sent:3} sent, {rows.deleted} deleted{unwanted}"
    print(f"  {result.consumer:8} {result.status:9} {told}", flush=True)
    if result.error is not None:
        print(f"           {result.error.message}")


def tell_hits(server: str, words: str) -> None:
    print(f"  A search for “{words}” finds:")
    for title in search_works(server, words) or ["nothing"]:
        print(f"    {title}", flush=True)


def tell_windows(project: OpenProject, pipeline: str) -> None:
    for line in project.windows(pipeline):
        print(f"  {line.since:%T} to {line.until:%T}  {line.status}", flush=True)


def tell_changes(project: OpenProject, pipeline: str, since: int) -> None:
    changes = project.read_changes(TABLES[pipeline], since=since, limit=100)
    for row in changes.rows:
        print(f"  {row['_esker_op']:8} {row['id']}")


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0]) if arguments else HERE.parents[1] / ".demo/catalogue"
    server = os.environ.get("SEARCH_URL")
    with running() as sources:
        make_project(folder, sources, server)
        project = esker.open(folder, SEARCH if server else None)
        sources.fill()
        archives, books = len(sources.calm.records), len(sources.sierra.records)
        tell(f"1. CALM has {archives} records, Sierra {books}: load them")
        first = project.run_all()
        tell_runs(first)
        tell("Deliver them, as works:")
        if server:
            tell_reindexes(project)
            tell_hits(server, "herbal letters")
        else:
            tell_deliveries(project.deliver_all())

        tell("2. Some are changed, deleted, added")
        sources.change()
        let_windows_pass()
        tell_runs(project.run_all())
        tell("What changed in CALM's table:")
        tell_changes(project, "calm", since=first.pipelines[0].changeset or 0)
        tell("Only that is delivered:")
        tell_deliveries(project.deliver_all())
        if server:
            tell_hits(server, "corrected")

        tell("3. Some come back; the API of Sierra fails when it comes to b1010")
        sources.bring_back()
        sources.sierra.broken.add("b1010")
        let_windows_pass()
        tell_runs(project.run_all())
        tell("Windows of Sierra:")
        tell_windows(project, "sierra")

        tell("4. The API is repaired: what is missing is loaded, and nothing else")
        sources.sierra.broken.clear()
        tell_runs(project.run_all())
        tell_windows(project, "sierra")
        tell_deliveries(project.deliver_all())

        tell("5. The tables")
        for name, table in TABLES.items():
            rows = project.table(table)
            print(f"  {name:7} {rows.count():3} records, {rows.where('deleted').count()} of them deleted")
        for row in project.show_quarantined("calm"):
            print(f"  calm's quarantine: {row['reason']}")

        if server:
            tell("6. All works, into new indices; then the aliases are switched")
            tell_reindexes(project)
            tell_hits(server, "corrected")
    env = f" --env {SEARCH}" if server else ""
    tell(f"The project stays in {folder}: esker status --project {folder}{env}")
    if not server:
        print(HOW_TO_SEARCH.format(folder=folder))


if __name__ == "__main__":
    main(sys.argv[1:])
