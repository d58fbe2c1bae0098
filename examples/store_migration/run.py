"""Move a store over: records in S3 with an index in DynamoDB become a table, while both are in use.

`run.py [FOLDER]` starts moto's S3 and DynamoDB, fills an old store, makes a project (in .demo/store_migration
if no folder is named), imports, keeps both side by side, compares, and switches. The project stays, to look
at; the next time it is made anew.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE / "sources")]

from versioned_store import VersionedStore

import esker
from esker.pipeline.result import RunResult
from examples.store_migration import moto_server
from examples.store_migration.compare import compare
from examples.store_migration.switch import NotSwitched, Readers

RECORDS = 120
BEGIN = datetime(2026, 11, 2, 8, tzinfo=UTC)
"""When the first record was written; one more came every second."""


def record(number: int) -> dict[str, Any]:
    """Return a record. They are as they are: some have no note, some no creators."""
    found: dict[str, Any] = {"title": f"Print {number}: “Gwanwyn”"}
    if number % 3:
        found["creators"] = [f"Person {number % 7}", f"Person {number % 5}"]
    if number % 4 == 0:
        found["note"] = f"foxed,\n{number} mm"
    return found


def fill(store: VersionedStore) -> None:
    """Let the old store have records. Some were changed since they were written, one was deleted."""
    store.create()
    for number in range(RECORDS):
        store.put(name(number), record(number), BEGIN + timedelta(seconds=number))
    for number in (5, 50, 100):
        store.put(name(number), {**record(number), "note": "seen again"}, after(RECORDS + number))
    store.delete(name(7), after(RECORDS + 110))


def go_on(store: VersionedStore) -> None:
    """Let people work on: the old store is still where they write."""
    for number in (1, 2):
        store.put(name(number), {**record(number), "title": f"Print {number}, retitled"}, after(300 + number))
    store.delete(name(3), after(310))
    store.put(name(900), record(900), after(311))
    store.put(name(7), record(7), after(312))  # it was deleted


def write_with_a_slow_clock(store: VersionedStore) -> None:
    """Change a record with a time that lies an hour back: whoever asks for what is new does not see it."""
    store.put(name(11), {**record(11), "note": "by a machine whose clock was slow"}, after(-3600))


def name(number: int) -> str:
    return f"print-{number:03}"


def after(seconds: int) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


@contextmanager
def connected(endpoint: str) -> Iterator[VersionedStore]:
    """Open the old store. The source function takes the same credentials from the environment."""
    os.environ.update(moto_server.CREDENTIALS)
    store = VersionedStore.connect(endpoint, "records", "records-index")
    try:
        yield store
    finally:
        store.close()


def make_project(folder: Path, endpoint: str) -> None:
    """Make the project anew."""
    if (folder / "esker.yml").exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("contracts", "sources"):
        shutil.copytree(HERE / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE / "esker.yml", folder)
    (folder / ".env").write_text(f"STORE_ENDPOINT={endpoint}\n", encoding="utf-8")


def tell(text: str) -> None:
    print(f"\n{text}", flush=True)


def tell_run(result: RunResult) -> None:
    counts = {name: count for name, count in asdict(result.rows).items() if count}
    read = counts.pop("read", 0)
    parts = " + ".join(f"{count} {name}" for name, count in counts.items()) or "nothing"
    print(f"  {read} read = {parts} ({result.batches} published)", flush=True)


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0]) if arguments else HERE.parents[1] / ".demo/store_migration"
    if not moto_server.is_installed():
        print("installing moto, once, into .cache/moto", flush=True)
        moto_server.install()
    with moto_server.running() as endpoint, connected(endpoint) as store:
        make_project(folder, endpoint)
        project = esker.open(folder)
        readers = Readers(project, store)
        fill(store)
        tell(f"1. The old store has {RECORDS} records: import them")
        tell_run(project.run("records"))

        tell("2. Side by side: people write to the old store, and the table follows")
        go_on(store)
        tell_run(project.run("records"))
        print(f"  {compare(project, store)}")

        tell("3. A record is written by a machine whose clock is an hour slow")
        write_with_a_slow_clock(store)
        tell_run(project.run("records"))
        try:
            readers.switch()
        except NotSwitched as error:
            print(f"  not switched: {error}")

        tell("4. It is written once more, with the right time: switch")
        store.put(name(11), record(11), after(400))
        readers.switch()
        print(f"  readers find {readers.read(name(1))} in the table")
        readers.check_store()
        print("  nothing was written to the old store since")

        tell("5. A program that nobody thought of writes to the old store")
        store.put(name(12), record(12), after(500))
        try:
            readers.check_store()
        except NotSwitched as error:
            print(f"  {error}")
        else:
            raise SystemExit("the check found nothing")
    tell(f"The project stays in {folder}: esker show catalogue.records --project {folder}")


if __name__ == "__main__":
    main(sys.argv[1:])
