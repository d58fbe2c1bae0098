"""Up to where all rows are there, as transactions end one after the other."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from esker.ledger.cursor_marks import CursorMark, keep_marks, read_marks, thinned
from esker.ledger.state import State
from tests.ledger.states import project_in


def mark(top: str, *waits: str) -> CursorMark:
    return CursorMark(top, frozenset(waits))


def look(mark: CursorMark, running: set[str], *prepared: str) -> CursorMark:
    return mark.looked(frozenset(running), frozenset(prepared))


def test_a_mark_waits_for_what_ran_when_it_was_made() -> None:
    """Whatever begins later has higher values: it is not waited for."""
    seen = look(mark("10", "3/1", "4/7"), {"4/7", "5/1"})
    assert seen == mark("10", "4/7")
    assert look(seen, {"4/8", "5/1"}).is_settled


def test_a_transaction_that_was_prepared() -> None:
    """No session holds it any more, and nothing tells which one it is: all that are there are waited for."""
    seen = look(mark("10", "3/1", "4/7"), {"4/7"}, "prepared 8")
    assert seen == mark("10", "4/7", "prepared 8")
    seen = look(seen, {"4/7"}, "prepared 8", "prepared 9")
    assert seen == mark("10", "4/7", "prepared 8")
    seen = look(look(seen, set(), "prepared 8"), set(), "prepared 10")
    assert seen.is_settled


def test_marks_that_are_kept() -> None:
    """Those before the newest settled one say nothing more, and there are never many."""
    assert thinned([mark("1", "a"), mark("2"), mark("3", "b")]) == [mark("2"), mark("3", "b")]
    many = [mark(str(number), "a") for number in range(65)]
    kept = thinned(many)
    assert (len(kept), kept[0], kept[-1]) == (33, many[0], many[-1])


def test_marks_are_of_one_source(tmp_path: Path) -> None:
    with closing(State.open(project_in(tmp_path))) as state:
        assert read_marks(state, "shop", "sales", "jdbc a id") == []
        marks = [mark("1"), mark("2", "3/1", "prepared 4")]
        keep_marks(state, "shop", "sales", "jdbc a id", [mark("0")])
        keep_marks(state, "shop", "sales", "jdbc a id", marks)
        assert read_marks(state, "shop", "sales", "jdbc a id") == marks
        assert read_marks(state, "shop", "sales", "jdbc a other") == []
        assert read_marks(state, "shop", "others", "jdbc a id") == []
