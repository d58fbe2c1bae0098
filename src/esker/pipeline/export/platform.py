"""Pipelines as a platform sees them that starts Spark itself: jars, settings, packages, declarations."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

from esker.engine.jars import Jar, locked_jars
from esker.engine.session import needed_jars, startup_settings
from esker.errors import CannotExport
from esker.pipeline.export.consumers import consumers_of, extras_for
from esker.pipeline.export.declarations import declarations
from esker.pipeline.order import in_order
from esker.project import Project
from esker.project.catalogs import HadoopCatalog, SqliteCatalog
from esker.project.load import PROJECT_FILE
from esker.project.secrets import names_in
from esker.project.sources import FilesSource, JdbcSource

RUN = '''"""Run pipelines of an Esker project in the Spark that started this program."""

from esker.cli.submitted import main

main()
'''
_VARIABLE = re.compile(r"(?<!\$)\$\{([A-Za-z_][A-Za-z0-9_]*)")
_SPARK = ("pyspark", "py4j")
"""Packages that a platform has, in the version that fits its Spark."""
_SAID = ("spark.sql.extensions", "spark.sql.catalogImplementation", "spark.esker.jars")
_EXTRAS = {"http": "http", "oai_pmh": "oai", "dlt": "dlt"}
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?")


@dataclass(frozen=True)
class Job:
    """Some pipelines of a project, to run elsewhere."""

    project: Project
    pipelines: tuple[str, ...]
    """In the order in which they feed each other."""
    platform: str
    minor: str
    """The platform's minor version of Spark."""

    @classmethod
    def of(cls, project: Project, pipelines: Sequence[str], platform: str, minor: str) -> Job:
        """Raises UnknownPipeline or CannotExport."""
        for name in pipelines:
            project.check_name(name)
            if name not in project.pipelines:
                raise CannotExport(platform, f'"{name}" is a family of pipelines: name one of a single table')
        chosen = pipelines or list(project.pipelines)
        if not chosen:
            raise CannotExport(platform, "the project has no pipeline")
        return cls(project, tuple(in_order(project, chosen)), platform, minor)

    @property
    def name(self) -> str:
        return f"esker-{self.project.project}"

    @property
    def consumers(self) -> tuple[str, ...]:
        """Who is told of what the pipelines load. What only Spark delivers, and the beginning and the end of
        a reindex, is done here, too."""
        return consumers_of(self.project, self.pipelines)

    @property
    def jars(self) -> list[Jar]:
        lock = locked_jars(self.minor)
        return [lock[name] for name in needed_jars(self.project)]

    @property
    def settings(self) -> dict[str, str]:
        """What Spark is told when it starts, where the platform may have other ideas.

        The run itself sets all else, and what holds a variable.
        """
        said = {key: value for key, value in startup_settings(self.project).items() if key in _SAID}
        return said | {key: value for key, value in self.project.spark.conf.items() if not names_in(value)}

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables that the project file mentions."""
        text = (self.project.folder / PROJECT_FILE).read_text(encoding="utf-8")
        return tuple(dict.fromkeys(_VARIABLE.findall(text)))

    @property
    def is_on_driver(self) -> bool:
        """A source keeps files on the driver's disk meanwhile, and no worker sees that disk."""
        return any(_keeps_files(self.project, name) for name in self.pipelines)

    def refused(self, why: str) -> CannotExport:
        return CannotExport(self.platform, why)

    def check_reachable(self) -> None:
        """Raise CannotExport for what only this machine has."""
        for name in self.pipelines:
            pipeline = self.project.pipeline(name)
            catalog = self.project.catalog_of(pipeline.catalog)
            if isinstance(catalog, SqliteCatalog | HadoopCatalog):
                raise self.refused(
                    f'pipeline "{name}" loads into a catalog of type {catalog.type}, which only this '
                    "machine sees"
                )
            place = catalog.warehouse
            # To a REST catalog a warehouse is a name, or nothing.
            if catalog.type != "rest" and place is not None and ":" not in place:
                raise self.refused(f'the warehouse "{place}" is a folder of this machine')
            if isinstance(pipeline.source, FilesSource) and pipeline.source.address is None:
                raise self.refused(f'pipeline "{name}" reads files of this machine: {pipeline.source.path}')

    def lock(self) -> dict[str, dict[str, str]]:
        """Return coordinate, file and checksum of each jar."""
        return {
            jar.name: {"coordinate": jar.coordinate, "file": jar.file_name, "sha256": jar.sha256}
            for jar in self.jars
        }

    def requirements(self) -> str:
        """Return the packages that Esker runs with here, in their versions, without PySpark."""
        # What loads beside Spark comes with the extra; PySpark itself is the platform's.
        extras = {"spark"} | {_EXTRAS.get(self.project.pipeline(name).source.type) for name in self.pipelines}
        extras |= extras_for(self.project, self.consumers)
        if self.project.state.url.startswith("postgresql"):
            extras.add("postgres")
        found: dict[str, str] = {}
        _gather("esker", {extra for extra in extras if extra}, found)
        return "".join(f"{name}=={found[name]}\n" for name in sorted(found) if name != "esker")

    def archive(self) -> bytes:
        """Return the project's declarations as a zip file. Raises CannotExport for some of another folder."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
            for path in declarations(self.project.folder):
                if path.is_absolute() or path.parts[0] == "..":
                    raise self.refused(f"{path} is not in the project's folder, and cannot come along")
                # Without its time: the same project gives the same bytes.
                entry = zipfile.ZipInfo(path.as_posix())
                entry.external_attr = 0o644 << 16
                file.writestr(entry, (self.project.folder / path).read_bytes(), zipfile.ZIP_DEFLATED)
        return packed.getvalue()

    def arguments(self, project: str) -> dict[str, str]:
        """Return what the entry point is told."""
        given = {"--esker-project": project, "--esker-pipelines": ",".join(self.pipelines)}
        env = self.project.environment
        return given | ({"--esker-env": env} if env is not None else {})


def _keeps_files(project: Project, name: str) -> bool:
    source = project.pipeline(name).source
    if isinstance(source, JdbcSource):
        return source.window is not None
    return source.type in ("files", "http", "oai_pmh")


def _gather(package: str, extras: set[str], found: dict[str, str]) -> None:
    """Collect what a package needs and is installed."""
    name = re.sub(r"[-_.]+", "-", package).lower()
    if name in _SPARK:
        return
    try:
        found[name] = version(name)
        wanted = requires(name) or []
    except PackageNotFoundError:
        return  # for another system or Python
    for line in wanted:
        text, _, marker = line.partition(";")
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", marker)
        if extra is not None and extra[1] not in extras:
            continue
        match = _REQUIREMENT.match(text.strip())
        assert match is not None
        inner = {each.strip() for each in (match[2] or "").split(",") if each.strip()}
        if re.sub(r"[-_.]+", "-", match[1]).lower() not in found or inner:
            _gather(match[1], inner, found)
