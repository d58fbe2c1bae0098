"""Find the place that a files source reads from."""

from __future__ import annotations

from esker.project import Project
from esker.project.sources import FilesSource
from esker.sources.files.listing import LocalDisk
from esker.sources.files.place import Place


def place_of(project: Project, pipeline: str, source: FilesSource) -> Place:
    """Return where the files of a source lie."""
    address = source.address
    if address is None:
        return LocalDisk(project, pipeline, source)
    from esker.engine.buckets import file_system  # noqa: PLC0415 (Arrow)
    from esker.sources.files.bucket import Bucket  # noqa: PLC0415

    files = file_system(address, project.store_connection(source.connection))
    account = f"@{address.account_host}" if address.account_host else ""
    return Bucket(files, pipeline, address.scheme, account, address.path)
