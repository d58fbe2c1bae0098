"""Delete and insert: the rows that a batch has of a key take the place of all that are stored."""

from __future__ import annotations

from esker.load.steps import Steps


def delete_insert_steps() -> Steps:
    """Return queries for the edits of a batch (`edits.py` tells what they see, and the columns of edits).

    Rows of a key that are in the batch and in the table, as often here as there, stay where they are.
    A row of the batch that is a delete stands for one stored row that goes; all others that go are missing.
    """
    return ("paired", _PAIRED), ("edits", _EDITS)


_PAIRED = """
    SELECT c.place, c.hash, h.winner, h.file, h.pos, h.s_hash
    FROM (SELECT *, row_number() OVER (PARTITION BY k, hash ORDER BY place) AS copy
          FROM {incoming} WHERE NOT del) AS c
    FULL JOIN (SELECT *, row_number() OVER (PARTITION BY winner, s_hash ORDER BY file, pos) AS copy
               FROM {stored}) AS h
      ON h.winner = c.k AND h.s_hash = c.hash AND h.copy = c.copy"""
"""Rows of the batch, each beside the stored row that is the same, if there is one, and the other way round"""

_EDITS = """
    SELECT *, CAST(NULL AS BIGINT) AS final, CAST(NULL AS BIGINT) AS valid_from,
           CAST(NULL AS BIGINT) AS valid_to, CAST(NULL AS BOOLEAN) AS is_current, false AS remember
    FROM (
      SELECT place AS number, place, file, pos,
             CASE WHEN file IS NULL THEN 'insert' ELSE 'unchanged' END AS outcome,
             CASE WHEN file IS NULL THEN 'insert' END AS op,
             file IS NULL AS writes, false AS removes, CAST(NULL AS BIGINT) AS before, hash AS after
      FROM {paired} WHERE place IS NOT NULL
      UNION ALL
      SELECT m.place, CAST(NULL AS BIGINT), g.file, g.pos,
             CASE WHEN m.place IS NULL THEN 'missing' WHEN g.file IS NULL THEN 'ignored' ELSE 'delete' END,
             CASE WHEN g.file IS NOT NULL THEN 'delete' END,
             false, g.file IS NOT NULL, g.s_hash, CAST(NULL AS BIGINT)
      FROM (SELECT *, row_number() OVER (PARTITION BY winner ORDER BY file, pos) AS nth
            FROM {paired} WHERE place IS NULL) AS g
      FULL JOIN (SELECT *, row_number() OVER (PARTITION BY k ORDER BY place) AS nth
                 FROM {incoming} WHERE del) AS m
        ON m.k = g.winner AND m.nth = g.nth) AS edits"""
