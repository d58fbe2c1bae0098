"""The kinds of object store that a project may declare."""

from esker.project.stores.azure import AzureStore
from esker.project.stores.gcs import GcsStore
from esker.project.stores.s3 import S3Store

Store = S3Store
"""All kinds that may hold tables. A further one makes this a union, told apart by `type`."""

FileStore = S3Store | GcsStore | AzureStore
"""All kinds that files can be read from."""

__all__ = ["AzureStore", "FileStore", "GcsStore", "S3Store", "Store"]
