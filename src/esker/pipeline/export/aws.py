"""What AWS must know of a job, whichever service runs it: places, rights, rules of the bucket, databases."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from esker.engine.iceberg.table import TableId, named_table
from esker.pipeline.export.consumers import rights_to_send, tables_joined
from esker.pipeline.export.platform import Job
from esker.project.catalogs import Catalog, GlueCatalog, RestCatalog
from esker.project.contract.model import Reference
from esker.project.reserved import BACKUPS, TRASH
from esker.project.sources import FilesSource
from esker.project.stores import S3Store
from esker.project.warehouses import store_kind

_TRASH_DAYS, _BACKUP_DAYS, _RESULT_DAYS, _UPLOAD_DAYS = 30, 365, 30, 7
_RESULTS = "_esker/results/"
"""Where runs write down how they ended, below the home. No table lies below `_esker`."""
_HOME = re.compile(r"s3a?://[A-Za-z0-9._-]+(/[A-Za-z0-9._=-]+)+/?")
_READ = ["s3:GetObject"]
_WRITE = [
    *("s3:GetObject", "s3:PutObject", "s3:DeleteObject"),
    *("s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"),
]


@dataclass(frozen=True)
class Place:
    """A bucket and the beginning of keys in it; the beginning is empty, or ends with a slash."""

    bucket: str
    prefix: str

    @classmethod
    def of(cls, address: str) -> Place:
        bucket, _, path = address.partition("://")[2].partition("/")
        return cls(bucket, f"{path.strip('/')}/" if path.strip("/") else "")

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


@dataclass(frozen=True)
class Account:
    """Where in AWS a job runs."""

    job: Job
    account: str
    region: str
    home: Place
    """Where its script, jars and packages lie."""

    @classmethod
    def of(cls, job: Job, account: str | None, home: str | None) -> Account:
        """Raises CannotExport for what AWS cannot run, and for what is not known."""
        job.check_reachable()
        catalog = job.project.catalog_of(job.project.pipeline(job.pipelines[0]).catalog)
        store = job.project.store_of(catalog)
        if not isinstance(store, S3Store):
            raise job.refused("the tables are not in S3")
        if store.endpoint is not None:
            raise job.refused(f"the tables are in {store.endpoint}, and not in Amazon's S3")
        if store.profile is not None:
            raise job.refused(
                f'the store has the profile "{store.profile}" of this machine; leave it out there'
            )
        if store.region is None:
            raise job.refused("the region is not known; write it below store: as region:")
        known = account or (catalog.account if isinstance(catalog, GlueCatalog) else None)
        if known is None or not re.fullmatch(r"\d{12}", known):
            raise job.refused("the account is not known; write --account with its 12 digits")
        if home is None and store_kind(catalog.warehouse) != "s3":
            raise job.refused("it is not known where to put the job's files; write --home s3://bucket/path")
        place = home or f"s3://{Place.of(catalog.warehouse or '').bucket}/esker/{job.project.project}"
        if _HOME.fullmatch(place) is None or _RESULTS.partition("/")[0] in place.split("/"):
            raise job.refused(
                f'"{place}" is no home for the job\'s files: write --home s3://bucket/path, a folder of its '
                "own with letters, digits and . _ = -"
            )
        return cls(job, known, store.region, Place.of(place))

    @property
    def partition(self) -> str:
        if self.region.startswith("cn-"):
            return "aws-cn"
        return "aws-us-gov" if self.region.startswith("us-gov-") else "aws"

    @property
    def role(self) -> str:
        return f"arn:{self.partition}:iam::{self.account}:role/{self.job.name}"

    @property
    def secret(self) -> str | None:
        """The name of the secret that holds the project's variables; None if it has none."""
        return f"esker/{self.job.project.project}" if self.job.variables else None

    def arn(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"

    def in_home(self, name: str) -> str:
        return f"{self.home}/{name}"

    @property
    def results(self) -> Place:
        """Where runs write down how they ended."""
        return Place(self.home.bucket, f"{self.home.prefix}{_RESULTS}")

    @property
    def jar_places(self) -> str:
        return ",".join(self.in_home(f"jars/{jar.file_name}") for jar in self.job.jars)

    def arguments(self) -> dict[str, str]:
        """Return what the entry point is told."""
        given = self.job.arguments(self.in_home("project.zip"))
        return given | ({"--esker-secrets": self.secret} if self.secret is not None else {})

    @property
    def settings(self) -> dict[str, str]:
        return self.job.settings | ({"spark.esker.on": "driver"} if self.job.is_on_driver else {})

    def warehouses(self) -> list[Place]:
        """Return where tables of these pipelines lie in S3."""
        pipelines = map(self.job.project.pipeline, self.job.pipelines)
        return _in_s3(self.job.project.catalog_of(pipeline.catalog) for pipeline in pipelines)

    @property
    def _joined(self) -> list[TableId]:
        return tables_joined(self.job.project, self.job.consumers)

    def namespaces(self) -> list[str]:
        """Return the databases that hold the tables, and Esker's own beside them."""
        tables = (self.job.project.pipeline(name).table for name in self.job.pipelines)
        names = [table.rpartition(".")[0] for table in tables]
        if self.job.project.system_namespace is not None:
            names.append(self.job.project.system_namespace)
        return list(dict.fromkeys(names))

    def tables_read(self) -> list[TableId]:
        """Return what these pipelines read, or their contracts refer to, and none of them writes."""
        project = self.job.project
        written = {
            (project.catalog_name(pipeline.catalog), pipeline.table)
            for pipeline in map(project.pipeline, self.job.pipelines)
        }
        found: dict[TableId, None] = {}
        for name in self.job.pipelines:
            pipeline, contract = project.pipeline(name), project.contract(name)
            rules = contract.rules if contract is not None else ()
            referred_to = (rule.table for rule in rules if isinstance(rule, Reference))
            for table in (*pipeline.source.tables, *referred_to):
                found[named_table(project, table, pipeline.catalog)] = None
        return [table for table in found if (table.catalog, table.name) not in written]

    @property
    def has_glue_catalog(self) -> bool:
        names = (self.job.project.pipeline(name).catalog for name in self.job.pipelines)
        return any(isinstance(self.job.project.catalog_of(name), GlueCatalog) for name in names)

    def notes(self) -> list[str]:
        """Return what the files lack, because only a catalog's server knows it."""
        project = self.job.project
        names = [project.catalog_name(project.pipeline(name).catalog) for name in self.job.pipelines]
        names += [table.catalog for table in self.tables_read()]
        found = []
        for name in dict.fromkeys(names):
            catalog = project.catalogs()[name]
            hands_out_keys = isinstance(catalog, RestCatalog) and catalog.vended_credentials
            if store_kind(catalog.warehouse) != "s3" and not hands_out_keys:
                found.append(
                    f'Where catalog "{name}" keeps its files, only its server knows: policy.json gives no '
                    "right to them. Add it by hand."
                )
        return found

    def policy(self, *further: dict[str, Any]) -> dict[str, Any]:
        """Return the rights that the job needs, and no others."""
        return {"Version": "2012-10-17", "Statement": [*self._statements(), *further]}

    def _statements(self) -> Iterator[dict[str, Any]]:
        catalogs = self.job.project.catalogs()
        # Deliveries set tags on the tables whose rows they join.
        joined = _in_s3(catalogs[table.catalog] for table in self._joined)
        files = list(dict.fromkeys((*self.warehouses(), *joined)))
        if files:
            yield self.objects("TableFiles", files, _WRITE)
        read = self.tables_read()
        others = [place for place in _in_s3(catalogs[table.catalog] for table in read) if place not in files]
        if others:
            yield self.objects("TableFilesRead", others, _READ)
        sources = [
            Place.of(_fixed(source.path))
            for source in (self.job.project.pipeline(name).source for name in self.job.pipelines)
            if isinstance(source, FilesSource) and store_kind(source.path) == "s3"
        ]
        if sources:
            yield self.objects("SourceFiles", sources, _READ)
        yield self.objects("JobFiles", [self.home], _READ)
        yield self.objects("Results", [self.results], ["s3:PutObject"])
        places = list(dict.fromkeys([*files, *others, *sources, self.home]))
        for index, place in enumerate(places):
            bucket = f"arn:{self.partition}:s3:::{place.bucket}"
            listing: dict[str, Any] = {
                "Sid": f"List{index}",
                "Effect": "Allow",
                "Action": ["s3:ListBucket"],
                "Resource": [bucket],
            }
            if place.prefix:
                listing["Condition"] = {"StringLike": {"s3:prefix": [f"{place.prefix}*"]}}
            yield listing
        yield {
            "Sid": "WhereBucketsAre",
            "Effect": "Allow",
            "Action": ["s3:GetBucketLocation"],
            "Resource": sorted({f"arn:{self.partition}:s3:::{place.bucket}" for place in places}),
        }
        yield from self._glue_statements(read)
        yield from rights_to_send(self.job.project, self.job.consumers, self.partition)
        if self.secret is not None:
            yield {
                "Sid": "Secrets",
                "Effect": "Allow",
                "Action": ["secretsmanager:GetSecretValue"],
                # AWS puts six characters of its own behind a name.
                "Resource": [self.arn("secretsmanager", f"secret:{self.secret}-??????")],
            }

    def _glue_statements(self, read: list[TableId]) -> Iterator[dict[str, Any]]:
        of_glue = [
            table for table in read if isinstance(self.job.project.catalogs()[table.catalog], GlueCatalog)
        ]
        if self.has_glue_catalog or of_glue:
            yield {
                "Sid": "Databases",
                "Effect": "Allow",
                "Action": ["glue:GetDatabases"],
                "Resource": [self.arn("glue", "catalog"), self.arn("glue", "database/*")],
            }
        if self.has_glue_catalog:
            joined = (table.namespace for table in self._joined)
            databases = list(dict.fromkeys((*self.namespaces(), *joined)))
            yield {
                "Sid": "Tables",
                "Effect": "Allow",
                "Action": [
                    *("glue:GetDatabase", "glue:GetTable", "glue:GetTables"),
                    *("glue:CreateTable", "glue:UpdateTable"),
                ],
                "Resource": [
                    self.arn("glue", "catalog"),
                    *(self.arn("glue", f"database/{name}") for name in databases),
                    *(self.arn("glue", f"table/{name}/*") for name in databases),
                ],
            }
        if of_glue:
            # Databases do not nest in Glue; what comes behind a table's name is one of its metadata tables.
            names = list(dict.fromkeys(tuple(table.name.split(".")[:2]) for table in of_glue))
            yield {
                "Sid": "TablesRead",
                "Effect": "Allow",
                "Action": ["glue:GetDatabase", "glue:GetTable", "glue:GetTables"],
                "Resource": [
                    self.arn("glue", "catalog"),
                    *dict.fromkeys(self.arn("glue", f"database/{database}") for database, _ in names),
                    # With the tables beside it, such as its change log.
                    *(
                        self.arn("glue", f"table/{database}/{table}{ending}")
                        for database, table in names
                        for ending in ("", "__*")
                    ),
                ],
            }

    def objects(self, sid: str, places: list[Place], actions: list[str]) -> dict[str, Any]:
        """Return the right to do something with all objects of some places."""
        resources = [f"arn:{self.partition}:s3:::{place.bucket}/{place.prefix}*" for place in places]
        return {"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": list(dict.fromkeys(resources))}

    def trust(self, service: str) -> dict[str, Any]:
        """Return who may take the role: one service, and only for this account."""
        return {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": service},
                    "Action": "sts:AssumeRole",
                    "Condition": {"StringEquals": {"aws:SourceAccount": self.account}},
                }
            ],
        }

    def lifecycles(self) -> dict[str, dict[str, Any]]:
        """Return the rules of each bucket. Nothing that a table is made of is ever among what expires."""
        # Who puts the rules of a bucket must tell its own from those of other projects and environments.
        own = f"esker/{self.job.project.state_key}"
        found: dict[str, list[dict[str, Any]]] = {}
        for place in self.warehouses():
            rules = found.setdefault(place.bucket, [])
            for name, folder, days in (("trash", TRASH, _TRASH_DAYS), ("backups", BACKUPS, _BACKUP_DAYS)):
                rules.append(_expiring(f"{own}/{name}-{len(rules)}", f"{place.prefix}{folder}", days))
            rules.append(
                {
                    "ID": f"{own}/aborted-uploads-{len(rules)}",
                    "Status": "Enabled",
                    # Parts of files that were never finished; no file is touched.
                    "Filter": {"Prefix": place.prefix},
                    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": _UPLOAD_DAYS},
                }
            )
        results = _expiring(f"{own}/results", self.results.prefix, _RESULT_DAYS)
        found.setdefault(self.home.bucket, []).append(results)
        self._check_apart(found)
        return {bucket: {"Rules": rules} for bucket, rules in found.items()}

    def _check_apart(self, rules: dict[str, list[dict[str, Any]]]) -> None:
        """Raise CannotExport where something that expires could be a part of a table, or hold one."""
        project = self.job.project
        pipelines = [*project.pipelines.values()]
        pipelines += [each for family in project.families.values() for each in family.stand_ins]
        reserved = TRASH.partition("/")[0]
        for name in (*(pipeline.table for pipeline in pipelines), project.system_namespace or ""):
            # Where a REST catalog puts a table is not known: at any depth, the name is not to be had.
            if reserved in name.split("."):
                raise self.job.refused(
                    f'in "{name}" is {reserved}, below which trash and results would expire'
                )
        for place in _in_s3(project.catalogs().values()):
            for rule in rules.get(place.bucket, ()):
                prefix = rule["Filter"]["Prefix"]
                own = (f"{place.prefix}{TRASH}", f"{place.prefix}{BACKUPS}")
                inside = prefix.startswith(place.prefix) and not prefix.startswith(own)
                if "Expiration" in rule and (inside or place.prefix.startswith(prefix)):
                    raise self.job.refused(
                        f"files below {self.home} expire, and tables lie there; write another --home"
                    )

    def databases(self) -> list[dict[str, Any]]:
        """Return Glue's databases, as it makes them."""
        if not self.has_glue_catalog:
            return []
        home = self.warehouses()[0]
        return [
            {"DatabaseInput": {"Name": name, "LocationUri": f"{home}/{name}.db"}}
            for name in self.namespaces()
        ]


def _in_s3(catalogs: Iterable[Catalog]) -> list[Place]:
    """Return where tables of catalogs lie in S3, as far as that is known here."""
    places = [catalog.warehouse for catalog in catalogs if store_kind(catalog.warehouse) == "s3"]
    return list(dict.fromkeys(Place.of(place) for place in places if place is not None))


def _expiring(name: str, prefix: str, days: int) -> dict[str, Any]:
    return {"ID": name, "Status": "Enabled", "Filter": {"Prefix": prefix}, "Expiration": {"Days": days}}


def _fixed(path: str) -> str:
    """Return the folder that all files of a pattern lie in."""
    return re.split(r"[*?\[{]", path, maxsplit=1)[0].rpartition("/")[0]


def as_json(document: Any) -> str:
    return json.dumps(document, indent=2) + "\n"
