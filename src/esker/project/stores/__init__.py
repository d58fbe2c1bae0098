"""The kinds of object store that a project may declare."""

from typing import Annotated

from pydantic import Field

from esker.project.stores.azure import AzureStore
from esker.project.stores.gcs import GcsStore
from esker.project.stores.s3 import S3Store

FileStore = S3Store | GcsStore | AzureStore
"""All kinds. Files can be read from each, and tables kept in each."""

Store = Annotated[FileStore, Field(discriminator="type")]
"""The same, told apart by `type`."""

__all__ = ["AzureStore", "FileStore", "GcsStore", "S3Store", "Store"]
