"""Random histories of a table against a dictionary that knows the state table and nothing else.

Batches with duplicates, late rows, deletes and rows without an order value alternate with what other
engines do: compaction, expiry, deletes, updates, inserts and rollbacks behind Esker's back. After every
step the table is the dictionary, the change log is what was changed by batches, and the counts are those
of the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from esker.errors import TableRewound
from esker.ledger.change_log import CHANGESET, OP
from tests.load.works import CHANGES, WORKS, Row, Works

pytestmark = pytest.mark.spark

KEYS = st.integers(0, 7)


@dataclass(frozen=True)
class Stored:
    """A row of the model."""

    at: int | None
    title: str | None
    deleted: bool = False


@dataclass(frozen=True)
class Sent:
    """A row of a batch."""

    key: int
    at: int | None
    title: str | None
    is_delete: bool


@dataclass(frozen=True)
class Rules:
    """The settings of a pipeline that the model knows."""

    is_ordered: bool
    is_soft: bool
    touches: bool


def is_newer(one: int | None, other: int | None) -> bool:
    return one is not None and (other is None or one > other)


class Model:
    """A table as a dictionary, after the state table of keyed modes."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.rows: dict[int, list[Stored]] = {}
        """Several rows of one key are another engine's doing."""
        self.logged: dict[int, Stored] = {}
        """What the log alone tells."""
        self.remembered: dict[int, int] = {}
        """Deletes that no row tells of, by their order value."""
        self.changesets = 0
        self.gap = 0
        """Changesets at the end that the log does not have: of tables that were adopted."""

    def load(self, batch: list[Sent]) -> Counter[str]:
        """Load a batch; return the counts."""
        counts: Counter[str] = Counter(read=len(batch))
        newest = max((sent.at for sent in batch if sent.at is not None), default=None)
        winners: dict[int, tuple[Sent, int | None]] = {}
        for sent in batch:
            effective = newest if sent.is_delete and sent.at is None else sent.at
            known = winners.get(sent.key)
            if known is not None:
                counts["duplicates"] += 1
            if known is None or not self.rules.is_ordered or not is_newer(known[1], effective):
                winners[sent.key] = sent, effective
        remembered = dict(self.remembered)
        for sent, effective in winners.values():
            counts[self._apply(sent, effective)] += 1
        changed = any(counts[name] for name in ("inserted", "updated", "deleted", "undeleted"))
        if changed or self.remembered != remembered:
            self.changesets, self.gap = self.changesets + 1, 0
        return counts

    def _apply(self, sent: Sent, effective: int | None) -> str:
        copies = self.rows.get(sent.key, [])
        if not copies:
            if sent.is_delete:
                self._remember(sent.key, effective)
                return "ignored"
            known = self.remembered.get(sent.key)
            if known is not None and not is_newer(sent.at, known):
                return "stale"
            self._put(sent.key, Stored(sent.at, sent.title))
            return "inserted"
        stored = min(
            copies, key=lambda row: (row.deleted, row.at is None, -(row.at if row.at is not None else 0))
        )
        self.rows[sent.key] = [stored]
        undated_delete = sent.is_delete and sent.at is None
        if self.rules.is_ordered and is_newer(stored.at, sent.at) and not undated_delete:
            return "stale"
        newer = self.rules.is_ordered and is_newer(effective, stored.at)
        arrived = Stored(sent.at, sent.title)
        if stored.deleted:
            if sent.is_delete and newer:
                self._remember(sent.key, effective)
            known = self.remembered.get(sent.key)
            if not sent.is_delete and known is not None and not is_newer(sent.at, known):
                return "stale"
            if sent.is_delete or (self.rules.is_ordered and not newer):
                return "unchanged"
            self._put(sent.key, arrived)
            return "undeleted"
        if sent.is_delete:
            last = effective if newer else stored.at
            self._bury(sent.key, replace(stored, at=last if self.rules.is_ordered else None, deleted=True))
            return "deleted"
        if stored.title != sent.title:
            self._put(sent.key, arrived)
            return "updated"
        if newer and self.rules.touches:
            self.rows[sent.key] = [arrived]
        return "unchanged"

    def update(self, key: int, title: str) -> None:
        """Do what `UPDATE … SET title` says, for a key of at most one row."""
        for row in self.rows.get(key, []):
            if not row.deleted and row.title != title:
                self._put(key, replace(row, title=title))
                self.changesets, self.gap = self.changesets + 1, 0

    def delete(self, key: int) -> None:
        """Do what `DELETE` says, for a key of at most one row."""
        for row in list(self.rows.get(key, [])):
            if not row.deleted:
                self._bury(key, replace(row, deleted=True))
                self.changesets, self.gap = self.changesets + 1, 0

    def _put(self, key: int, row: Stored) -> None:
        self.rows[key] = [row]
        self.logged[key] = row

    def _bury(self, key: int, row: Stored) -> None:
        if self.rules.is_soft:
            self._put(key, row)
        else:
            del self.rows[key]
            self.logged.pop(key, None)
            self._remember(key, row.at)

    def _remember(self, key: int, at: int | None) -> None:
        if self.rules.is_ordered and is_newer(at, self.remembered.get(key)):
            assert at is not None
            self.remembered[key] = at

    def visible(self) -> list[tuple[Any, ...]]:
        return sorted(
            ((key, row.at, row.title, row.deleted) for key, rows in self.rows.items() for row in rows),
            key=repr,
        )

    def replayed(self) -> list[tuple[Any, ...]]:
        return sorted(((key, row.at, row.title, row.deleted) for key, row in self.logged.items()), key=repr)


_SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.int64()), ("title", pa.string()), ("deleted", pa.bool_())])


class Histories(RuleBasedStateMachine):
    """Random histories. Order values of batches are even, those of another engine odd: no ties."""

    sequences = steps = 0

    @initialize(
        rules=st.builds(Rules, st.sampled_from([True, True, True, False]), st.booleans(), st.booleans()),
        version=st.sampled_from([2, 2, 3]),
        delete_mode=st.sampled_from(["merge-on-read", "copy-on-write"]),
        partitions=st.sampled_from([[], [], ["bucket(3, id)"], ["title"]]),
    )
    def begin(self, rules: Rules, version: int, delete_mode: str, partitions: list[str]) -> None:
        type(self).sequences += 1
        self.home = TemporaryDirectory(prefix="esker-model-")
        self.model = Model(rules)
        self.foreign = 1
        self.past: dict[int, dict[int, list[Stored]]] = {}
        """What the table held at snapshots that are still there."""
        keys: dict[str, Any] = {"order_by": "at"} if rules.is_ordered else {}
        self.works = Works(
            Path(self.home.name),
            lane="small",
            deletes="soft" if rules.is_soft else "hard",
            touch="on" if rules.touches else "off",
            format_version=version,
            partition_by=partitions,
            properties={"write.delete.mode": delete_mode, "write.update.mode": delete_mode},
            columns={"id": "bigint", "at": "bigint", "title": "string", "deleted": "boolean"},
            **keys,
        )
        # As users have it: other tests go without, because it takes longer.
        self.works.project.engine.spark.conf.set("spark.sql.adaptive.enabled", "true")
        self.lane = "small"
        self._load([Sent(key, 4, "a", False) for key in range(3)], "small")

    @rule(
        batch=st.lists(
            st.builds(
                Sent,
                KEYS,
                st.none() | st.integers(0, 6).map(lambda n: 2 * n),
                st.sampled_from(["a", "b", None]),
                st.sampled_from([False, False, True]),
            ),
            min_size=3,
            max_size=9,
        ),
        lane=st.sampled_from([*["small"] * 11, "large"]),
    )
    def load(self, batch: list[Sent], lane: str) -> None:
        self._load(batch, lane)

    def _load(self, batch: list[Sent], lane: str) -> None:
        if lane != self.lane:
            self.works.change(lane=lane)
            self.lane = lane
        ordered = self.model.rules.is_ordered
        rows = [
            {"id": s.key, "at": s.at if ordered else None, "title": s.title, "deleted": s.is_delete}
            for s in batch
        ]
        if not ordered:
            batch = [replace(sent, at=None) for sent in batch]
        expected = self.model.load(batch)
        result = self.works.load(pa.Table.from_pylist(rows, _SCHEMA))
        assert {name: number for name, number in asdict(result.rows).items() if number} == dict(expected)
        assert result.changeset == self.model.changesets
        self._check()

    @rule()
    def compact(self) -> None:
        self._call("rewrite_data_files(table => 'shop.works', options => map('rewrite-all', 'true'))")

    @rule()
    def compact_deletes(self) -> None:
        self._call(
            "rewrite_position_delete_files(table => 'shop.works', options => map('rewrite-all', 'true'))"
        )

    @rule()
    def expire(self) -> None:
        self.past.clear()
        self._call(
            "expire_snapshots(table => 'shop.works', retain_last => 1, "
            "older_than => TIMESTAMP '2999-01-01 00:00:00')"
        )

    @rule(which=st.integers(0, 9))
    def roll_back_and_adopt(self, which: int) -> None:
        """Somebody makes an old snapshot current; nothing is loaded until the table is adopted."""
        snapshot, rows = list(self.past.items())[which % len(self.past)]
        self.works.sql(f"CALL lake.system.set_current_snapshot('shop.works', {snapshot})")
        if self.works.project.plan_adoption("shop.works").is_rewound:
            with pytest.raises(TableRewound):
                self.works.load([{"id": 0}])
            self.works.project.adopt("shop.works")
            self.model.changesets += 1
            self.model.gap += 1
        self.model.rows = {key: list(copies) for key, copies in rows.items()}
        self._check()

    @rule(key=KEYS, title=st.sampled_from([None, "a", "b"]))
    def write_by_sql(self, key: int, title: str | None) -> None:
        """A person's statement: an update, or a delete where there is no title."""
        if len(self.model.rows.get(key, [])) > 1:
            return
        if title is None:
            run = self.works.project.sql(f"DELETE FROM shop.works WHERE id = {key}").run
            self.model.delete(key)
        else:
            run = self.works.project.sql(f"UPDATE shop.works SET title = '{title}' WHERE id = {key}").run
            self.model.update(key, title)
        assert run is not None
        assert run.changeset == self.model.changesets
        self._check()

    @rule(key=KEYS)
    def delete_behind_its_back(self, key: int) -> None:
        self.works.sql(f"DELETE FROM {WORKS} WHERE id = {key}")
        self.model.rows.pop(key, None)
        self._check()

    @rule(key=KEYS, title=st.sampled_from(["a", "b"]))
    def update_behind_its_back(self, key: int, title: str) -> None:
        """Another engine's update keeps the hash of the old row."""
        self.works.sql(f"UPDATE {WORKS} SET title = '{title}' WHERE id = {key}")
        if key in self.model.rows:
            self.model.rows[key] = [replace(row, title=title) for row in self.model.rows[key]]
        self._check()

    @precondition(lambda self: self.model.rules.is_ordered)
    @rule(key=KEYS, title=st.sampled_from(["a", "b"]))
    def insert_behind_its_back(self, key: int, title: str) -> None:
        """Another engine's upsert: a second row of the key, without a hash."""
        self.foreign += 2
        at = self.foreign % 14
        if any(row.at == at for row in self.model.rows.get(key, [])):
            return
        columns = "id, at, title, deleted, _esker_hash"  # Spark 3.5 wants all of them
        self.works.sql(f"INSERT INTO {WORKS} ({columns}) VALUES ({key}, {at}, '{title}', false, NULL)")
        self.model.rows.setdefault(key, []).append(Stored(at, title))
        self._check()

    def _call(self, procedure: str) -> None:
        self.works.sql(f"CALL lake.system.{procedure}")
        self._check()

    def _check(self) -> None:
        type(self).steps += 1
        current = self.works.sql(f"SELECT snapshot_id FROM {WORKS}.refs WHERE name = 'main'")[0][0]
        self.past[current] = {key: list(copies) for key, copies in self.model.rows.items()}
        stored = [(row["id"], row["at"], row["title"], row["deleted"]) for row in self.works.read()]
        assert sorted(stored, key=repr) == self.model.visible()
        log = self.works.log()
        # A changeset that only remembers deletes has no rows.
        assert {row[CHANGESET] for row in log} <= set(range(1, self.model.changesets + 1))
        logged = self.works.properties(CHANGES)["esker.logged"]
        assert logged == str(self.model.changesets - self.model.gap)
        assert sorted(_replayed(log), key=repr) == self.model.replayed()

    def teardown(self) -> None:
        if hasattr(self, "home"):
            self.home.cleanup()


def _replayed(log: list[Row]) -> Iterator[tuple[Any, ...]]:
    rows: dict[int, Row] = {}
    for change in log:
        if change[OP] == "delete" and not change["deleted"]:
            # Of a row that another engine inserted, the log knows nothing but its end.
            rows.pop(change["id"], None)
        else:
            rows[change["id"]] = change
    return ((row["id"], row["at"], row["title"], row["deleted"]) for row in rows.values())


SHORT = settings(
    max_examples=6,
    stateful_step_count=8,
    deadline=None,
    database=None,
    print_blob=True,
    # A step takes a second: a failure is told as it was found.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def run_histories(how: settings) -> None:
    Histories.sequences = Histories.steps = 0
    try:
        run_state_machine_as_test(Histories, settings=how)
    finally:
        print(f"{Histories.sequences} sequences, {Histories.steps} steps")
    assert Histories.steps > how.max_examples


def test_random_histories(spark_running: None) -> None:
    """A few short histories (`make soak` runs many)."""
    run_histories(SHORT)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_random_histories_at_length(spark_running: None) -> None:
    """Many long histories."""
    run_histories(settings(SHORT, max_examples=100, stateful_step_count=25))
