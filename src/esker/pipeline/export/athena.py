"""How Athena sees a catalog: it knows those of AWS and no others."""

from __future__ import annotations

from esker.pipeline.export.reader import Exported, Lake
from esker.project.catalogs import GlueCatalog, S3TablesCatalog


def export(lake: Lake) -> Exported:
    """Return a query. Raises CannotExport."""
    namespace, table = lake.example
    match lake.catalog:
        case GlueCatalog(account=account):
            catalog = "AwsDataCatalog"
            note = "Tables of Glue's catalog are there without further settings."
            if account is not None:
                note += f" From another account than {account}, register that one as a data source first."
        case S3TablesCatalog(warehouse=warehouse):
            catalog = f"s3tablescatalog/{warehouse.rpartition('/')[2]}"
            note = "Table buckets are there once S3 Tables are integrated with AWS analytics services."
        case _:
            raise lake.refused(
                f"Athena reads Glue's catalog and S3 Tables, and this one is of type {lake.catalog.type}"
            )
    text = f'-- {note}\nSELECT * FROM "{catalog}"."{namespace}"."{table}" LIMIT 10;\n'
    return Exported(f"{lake.name}.athena.sql", text)
