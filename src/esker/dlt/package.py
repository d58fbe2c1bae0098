"""A load package of dlt, as it lies in the working directory of the pipeline."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dlt.common.configuration.container import Container
from dlt.common.pipeline import PipelineContext
from dlt.common.storages.load_package import LoadPackageStateInjectableContext

from esker.dlt.staged import StagedFiles


@dataclass(frozen=True)
class LoadPackage:
    """What one load brings."""

    pipeline: str
    """The name of dlt's pipeline."""
    load_id: str
    created_at: datetime
    files: dict[str, StagedFiles]
    """By table; those that bring no rows but are to be emptied have files, too."""
    truncated: frozenset[str]
    """Tables whose rows go before those of the load come (`refresh="drop_data"`)."""

    @classmethod
    def current(cls, load_id: str) -> LoadPackage:
        """Return the package that dlt completes right now."""
        context = Container()[LoadPackageStateInjectableContext]
        storage, state = context.storage, context.state
        paths: dict[str, list[Path]] = defaultdict(list)
        for folder, job in storage.list_all_jobs_with_states(load_id):
            if folder != "completed_jobs":
                continue
            place = storage.get_job_file_path(load_id, folder, job.file_name())
            path = Path(storage.storage.make_full_path(place))
            if path.stat().st_size:
                paths[job.table_name].append(path)
            else:
                paths[job.table_name]  # a job without rows: the table is meant all the same
        created = state["created_at"]
        return cls(
            pipeline=pipeline_name(),
            load_id=load_id,
            created_at=created if created.tzinfo else created.replace(tzinfo=UTC),
            files={name: StagedFiles(tuple(sorted(found))) for name, found in paths.items()},
            truncated=frozenset(table["name"] for table in state.get("truncated_tables", [])),
        )


def pipeline_name() -> str:
    """Return the name of the dlt pipeline that runs."""
    return str(Container()[PipelineContext].pipeline().pipeline_name)
