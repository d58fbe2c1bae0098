"""Esker's own columns of a change log. They need no Spark to be named."""

from __future__ import annotations

CHANGESET = "_esker_changeset"
OP = "_esker_op"
HASH_BEFORE = "_esker_hash_before"
HASH_AFTER = "_esker_hash_after"
ORDER = "_esker_order"
PIPELINE = "_esker_pipeline"
RUN = "_esker_run"
BATCH = "_esker_batch"
ROW = "_esker_row"
COMMITTED_AT = "_esker_committed_at"
