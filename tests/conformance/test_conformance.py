"""Every catalog and store holds the same promises; where a server cannot, that is known and said.

What is there afterwards is read by other programs, as `esker export` tells them to; they see what Spark sees.

The short version runs on the embedded catalog and on SeaweedFS. `make soak` tries everything and writes
docs/catalogs.json, from which `make docs` makes the matrix in docs/reference/catalogs.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.capabilities import CAPABILITIES, race, sales_of
from tests.conformance.lakes import KINDS, MET, NO_SERVER, Lake, made
from tests.conformance.reading import READERS, read_by_all
from tests.conformance.results import Found, told, write

SHORT = {
    ("sqlite", "publish"),
    ("hadoop", "append"),
    ("hadoop", "upsert"),
    ("hadoop", "fsck"),
    ("rest", "deliver"),
    ("rest", "evolve"),
    ("rest", "fsck"),
    ("s3tables", "append"),
}
"""What the normal suite tries: what no other test of it does."""


def _cases() -> Iterator[Any]:
    for kind in KINDS:
        for capability in CAPABILITIES:
            marks = [] if (kind, capability) in SHORT else [pytest.mark.soak]
            if kind in ("rest", "s3tables"):
                marks.append(pytest.mark.xdist_group("seaweedfs"))
            yield pytest.param(kind, capability, marks=marks, id=f"{kind}-{capability.replace(' ', '_')}")


@pytest.fixture(scope="module")
def found() -> Iterator[Found]:
    """What the tests of this module find; written at their end, if a file for it is named."""
    found = Found()
    yield found
    write(found)


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path, spark_running: None) -> Iterator[Lake]:
    """An empty lake of the test's kind."""
    if request.node.callspec.params["kind"] in ("rest", "s3tables"):
        request.getfixturevalue("seaweedfs")
    with made(request.node.callspec.params["kind"], request, tmp_path / "lake") as lake:
        yield lake


@pytest.mark.spark
@pytest.mark.server
@pytest.mark.parametrize(("kind", "capability"), list(_cases()))
def test_promise(
    kind: str, capability: str, lake: Lake, tmp_path: Path, found: Found, request: pytest.FixtureRequest
) -> None:
    """A capability is there, and all readers see the same; or the limit that the page names is there."""
    limit = KINDS[kind].limits.get(capability)
    cells = found.results.setdefault(kind, {})
    with told(cells, [capability]):
        _try(limit, capability, lake, tmp_path / "work")
        if limit is None:
            readers = found.readers.setdefault(kind, {})
            with told(readers, READERS):
                seen = read_by_all(kind, capability, lake, tmp_path / "read", request)
            readers |= {name: cell for name, cell in seen.items() if readers.get(name) != "failed"}
    cells[capability] = limit or "yes"


def _try(limit: str | None, capability: str, lake: Lake, path: Path) -> None:
    try_it = CAPABILITIES[capability]
    if limit is None:
        try_it(lake, path)
    elif limit == NO_SERVER:
        assert lake.cutting is None
    elif limit.startswith("tried behind a lock"):
        locked = {"catalog": {**lake.project["catalog"], "properties": lake.lock}}
        race(replace(lake, project=lake.project | locked), path, rounds=2)
    elif limit.startswith("not promised"):
        project = sales_of(lake, path).open().project
        assert any("one writer" in warning for warning in project.warnings())
    else:
        met = MET[limit]
        with pytest.raises(met.error) as caught:
            try_it(lake, path)
        assert met.words in f"{caught.value} {getattr(caught.value, 'reason', '')}"
        if met.ids is None:
            assert not Path(lake.project["catalog"]["warehouse"]).exists()
        else:
            assert sales_of(lake, path / "after").rows("shop.works", "id") == [(id,) for id in met.ids]
