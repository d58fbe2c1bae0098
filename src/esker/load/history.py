"""History (scd2): every version of a key stays, with the time in which it was valid.

The versions of a key, those of a batch and those that are stored, and its deletes, are one line of events in
the order of their moments. Each version is valid until the next event; a delete ends one and begins none.
"""

from __future__ import annotations

from esker.load.diff import Undated, dated_sql
from esker.load.steps import Steps

_IN_ORDER = "PARTITION BY k ORDER BY since NULLS FIRST, del"
"""A delete in the very moment in which a version begins ends that version."""


def history_steps(arrival: tuple[str, ...], undated: Undated, *, is_late: bool) -> Steps:
    """Return queries for the edits of a batch (`edits.py` tells what they see, and the columns of edits).

    Of rows of one key with the same moment the last arrival counts. A row with the content of the version
    before it opens none. One with the moment of a stored version replaces it; nothing else that is stored is
    taken away, only the end of a version moves. A delete without a moment is as new as `dated_sql` says, and
    as the newest row of its key, unless the batch `is_late`. Deletes that end nothing are remembered; they
    end versions that come late.
    """
    return (
        ("held", _HELD),
        ("ends", _ENDS),
        ("met", _met(arrival, undated, is_late=is_late)),
        ("ordered", _ORDERED),
        ("line", _LINE),
        ("edits", _EDITS),
    )


_HELD = """
    SELECT *, lead(s_order) OVER (PARTITION BY k, copy ORDER BY s_order NULLS FIRST) AS s_next
    FROM (SELECT winner AS k, file, pos, s_hash, s_order, s_to, row_number() OVER (
            PARTITION BY winner, s_order
            ORDER BY CASE WHEN s_to IS NULL THEN 0 ELSE 1 END, file DESC, pos DESC) AS copy
          FROM {stored}) AS ranked"""
"""Stored versions. Of several with one moment, left by somebody else, only the first copy counts."""

_ENDS = """
    SELECT k, since, max(remembered) = 1 AS is_remembered
    FROM (SELECT k, s_to AS since, 0 AS remembered FROM {held}
          WHERE copy = 1 AND s_to IS NOT NULL AND (s_next IS NULL OR s_next > s_to)
          UNION ALL
          SELECT asked, forgotten, 1 FROM {forgotten} WHERE forgotten IS NOT NULL) AS ended
    GROUP BY k, since"""
"""Deletes that are known: those that ended a stored version, and those that are remembered."""


def _met(arrival: tuple[str, ...], undated: Undated, *, is_late: bool) -> str:
    """Return a query for the rows of the batch beside what is stored with their key and moment.

    `settled` is the outcome of those that change nothing because of it.
    """
    latest = ", ".join(f"{column} DESC" for column in arrival)
    since = (
        "i.eff" if is_late else "CASE WHEN l.latest > i.eff THEN l.latest ELSE coalesce(i.eff, l.latest) END"
    )
    return f"""
        SELECT c.k, c.since, c.del, c.hash, c.place, h.file, h.pos, h.s_hash,
               CASE WHEN c.since IS NULL THEN 'ignored'
                    WHEN NOT c.del AND h.s_hash = c.hash THEN 'unchanged'
                    WHEN c.del AND e.since IS NOT NULL THEN 'unchanged'
                    WHEN e.since IS NOT NULL THEN 'stale' END AS settled
        FROM (
          SELECT *, row_number() OVER (PARTITION BY k, since ORDER BY {latest}) AS copy
          FROM (
            SELECT i.*, CASE WHEN i.ord IS NOT NULL OR NOT i.del THEN i.ord ELSE {since} END AS since
            FROM ({dated_sql("{incoming}", undated, is_late=is_late)}) AS i
            LEFT JOIN (SELECT k, max(coalesce(s_to, s_order)) AS latest FROM {{held}} GROUP BY k) AS l
              ON l.k = i.k) AS dated) AS c
        LEFT JOIN {{held}} AS h ON h.k = c.k AND h.s_order = c.since AND h.copy = 1
        LEFT JOIN {{ends}} AS e ON e.k = c.k AND e.since = c.since
        WHERE c.copy = 1"""


_ORDERED = f"""
    SELECT *, coalesce(is_new AND CASE WHEN del THEN coalesce(was_del, true)
                       ELSE file IS NULL AND NOT was_del AND was_hash = hash END, false) AS is_idle
    FROM (
      SELECT *, lag(del) OVER ({_IN_ORDER}) AS was_del, lag(hash) OVER ({_IN_ORDER}) AS was_hash
      FROM (
        SELECT k, since, del, hash, true AS is_new, place, CASE WHEN NOT del THEN file END AS file,
               CASE WHEN NOT del THEN pos END AS pos, CASE WHEN NOT del THEN s_hash END AS s_hash,
               CASE WHEN false THEN since END AS s_to, false AS is_remembered
        FROM {{met}} WHERE settled IS NULL
        UNION ALL
        SELECT h.k, h.s_order, false, h.s_hash, false, CAST(NULL AS BIGINT), h.file, h.pos, h.s_hash, h.s_to,
               false
        FROM {{held}} AS h
        LEFT JOIN (SELECT k, since FROM {{met}} WHERE settled IS NULL AND NOT del AND file IS NOT NULL) AS r
          ON r.k = h.k AND r.since = h.s_order
        WHERE r.k IS NULL AND h.copy = 1
        UNION ALL
        SELECT k, since, true, NULL, false, NULL, NULL, NULL, NULL, NULL, is_remembered
        FROM {{ends}}) AS events) AS seen"""
"""All events in their order; `is_idle` are those of the batch that neither open nor end a version."""

_LINE = f"""
    SELECT *, lead(since) OVER ({_IN_ORDER}) AS until, lag(del) OVER ({_IN_ORDER}) AS p_del,
           lag(hash) OVER ({_IN_ORDER}) AS p_hash, lag(since) OVER ({_IN_ORDER}) AS p_since,
           lag(place) OVER ({_IN_ORDER}) AS p_place, lag(file) OVER ({_IN_ORDER}) AS p_file,
           lag(pos) OVER ({_IN_ORDER}) AS p_pos,
           coalesce(sum(CASE WHEN del THEN 0 ELSE 1 END) OVER (
             {_IN_ORDER} ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING), 0) > 0 AS goes_on
    FROM {{ordered}} WHERE NOT is_idle"""
"""Each event that counts, with the one before it and the moment of the next; `goes_on`: a version follows."""

_EDITS = """
    SELECT place AS number, place, file, pos, outcome, outcome AS op, true AS writes,
           file IS NOT NULL AS removes,
           CASE WHEN file IS NOT NULL THEN s_hash WHEN NOT p_del THEN p_hash END AS before,
           hash AS after, since AS final, since AS valid_from, until AS valid_to,
           until IS NULL AS is_current, false AS remember
    FROM (SELECT *, CASE WHEN file IS NOT NULL OR NOT p_del THEN 'update'
                         WHEN p_del THEN 'undelete' ELSE 'insert' END AS outcome
          FROM {line} WHERE is_new AND NOT del) AS opened
    UNION ALL
    SELECT NULL, NULL, file, pos, NULL, NULL, true, true, NULL, hash, since, since, until,
           until IS NULL, false
    FROM {line} WHERE NOT is_new AND NOT del AND until IS DISTINCT FROM s_to
    UNION ALL
    SELECT place, p_place, p_file, p_pos, CASE WHEN goes_on THEN 'update' ELSE 'delete' END,
           CASE WHEN goes_on THEN 'update' ELSE 'delete' END, false, false, p_hash,
           CASE WHEN goes_on THEN p_hash END, since, p_since, since, false, false
    FROM {line} WHERE is_new AND del
    UNION ALL
    SELECT place, NULL, NULL, NULL, CASE WHEN del AND was_del IS NULL THEN 'ignored' ELSE 'unchanged' END,
           NULL, false, false, NULL, NULL, since, NULL, NULL, NULL, del
    FROM {ordered} WHERE is_idle
    UNION ALL
    SELECT place, NULL, NULL, NULL, settled, NULL, false, false, NULL, NULL, since, NULL, NULL, NULL, false
    FROM {met} WHERE settled IS NOT NULL
    UNION ALL
    SELECT NULL, NULL, file, pos, NULL, NULL, false, true, NULL, NULL, NULL, NULL, NULL, NULL, false
    FROM {held} WHERE copy > 1
    UNION ALL
    SELECT k, NULL, NULL, NULL, NULL, NULL, false, false, NULL, NULL, since, NULL, NULL, NULL, true
    FROM {line} WHERE NOT is_new AND del AND NOT is_remembered AND p_del"""
"""Versions that open, stored ones that end elsewhere, deletes, what changes nothing, surplus copies, and
deletes that end nothing any more, because an earlier one came late: no row will tell of them."""
