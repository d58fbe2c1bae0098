"""Columns beside rows on which a SELECT was tried: what became of each row."""

WANTED = "_esker_wanted"
"""Whether a row passes WHERE."""
FAILED = "_esker_failed"
"""What could not be computed of a row; null where all could."""
GIVEN = "_esker_given"
"""The row that something failed on, as JSON; otherwise null."""
