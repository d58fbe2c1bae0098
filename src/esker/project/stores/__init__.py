"""The kinds of object store that a project may declare."""

from esker.project.stores.s3 import S3Store

Store = S3Store
"""All kinds there are. A further one makes this a union, told apart by `type`."""

__all__ = ["S3Store", "Store"]
