"""Pipelines run where they are exported to; what is written for AWS is what AWS takes, and no more."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

import botocore.session
import pyarrow as pa
import pyspark
import pytest
from botocore.validate import ParamValidator
from pyiceberg.catalog import load_catalog

from esker.cli import submitted
from esker.cli.submitted import main
from esker.deliver.transform import Transform
from esker.engine import submitted as submitted_session
from esker.engine.java import find_java
from esker.engine.pins import RUNTIMES, spark_minor
from esker.engine.submitted import check_iceberg
from esker.errors import (
    CannotExport,
    CatalogUnreachable,
    ConsumerBusy,
    EskerError,
    Fenced,
    Held,
    NotWithoutSpark,
    NotWrittenWithoutSpark,
    NullCursor,
    OtherIceberg,
    OtherSpark,
    PipelineBusy,
    PublishUnknown,
    RepairOutdated,
    RowsLost,
    SchemaMoved,
    SparkNotInstalled,
    UnknownPipeline,
)
from esker.ledger.leases import held
from esker.pipeline.api import OpenProject
from esker.pipeline.elsewhere import project_folder
from esker.pipeline.export import Bundle, Options, export_platform
from esker.pipeline.export.platform import Job
from esker.pipeline.reading import ReadingProject
from esker.project import load_project
from tests.folder import Folder
from tests.load.works import Make
from tests.needs import found, missing
from tests.servers.moto import KEY, SECRET
from tests.servers.spark_cluster import ON_CLUSTER, SparkCluster

PASSWORD = "opensesame-of-shop"
GLUE = {"type": "glue", "warehouse": "s3://lake/w", "account": "123456789012"}
ORDERS = Folder.files_pipeline("s3://raw/orders/*.csv", table="shop.orders", source={"connection": "raw"})
COPY = {"source": {"type": "table", "table": "shop.orders"}, "table": "gold.orders", "mode": "replace"}
AWS: dict[str, Any] = {
    "catalog": GLUE,
    "store": {"type": "s3", "region": "eu-west-1"},
    "connections": {"raw": {"type": "s3", "region": "eu-west-1"}},
    "state": {"url": "postgresql://db/state", "user": "me", "password": "${SHOP_PASSWORD}"},
    "pipelines": {"copy": COPY, "orders": ORDERS},
    "spark": {},
}


def write(files: dict[str, str | bytes], folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


class Submitted:
    """A project whose pipeline `sales` is exported for spark-submit."""

    def __init__(self, folder: Path, master: str, **conf: str) -> None:
        self.folder = Folder(folder / "project", spark={"driver_memory": "1g", "conf": ON_CLUSTER | conf})
        for file in range(2):
            self.folder.write_csv(f"landing/{file}.csv", ["id"], [[file * 10 + n] for n in range(10)])
        bundle = export_platform(load_project(self.folder.path), "spark-submit", ["sales"])
        self.place = write(bundle.files, folder / "exported")
        self.environment = os.environ | {
            "ESKER_PYTHON": sys.executable,
            "SPARK_SUBMIT": str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
            "SPARK_MASTER": master,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "JAVA_HOME": str(find_java().home),
        }

    def submit(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Return the exit status and what was printed last."""
        command = ["bash", str(self.place / "submit.sh"), *arguments]
        answer = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        lines = answer.stdout.strip().splitlines()
        assert lines, answer.stderr
        return answer.returncode, json.loads(lines[-1])

    def ids(self) -> list[int]:
        """Return what is in the table, as PyIceberg reads it."""
        own = self.folder.path / ".esker"
        address = f"sqlite:///{own}/catalog.db"
        with closing(load_catalog("lake", type="sql", uri=address, warehouse=f"{own}/warehouse")) as catalog:
            rows = catalog.load_table("shop.sales").scan().to_arrow().to_pylist()
        return sorted(row["id"] for row in rows)


def applications(cluster: SparkCluster) -> list[str]:
    """Return the ids of applications that were submitted."""
    return [each["id"] for each in cluster.status()["completedapps"] if each["name"] == "esker-shop"]


@pytest.mark.process
@pytest.mark.server
def test_spark_submit_runs_the_pipeline(spark_cluster: SparkCluster, tmp_path: Path) -> None:
    """The exported script loads every row through the executors, once; its exit status is Esker's."""
    submitted = Submitted(tmp_path, spark_cluster.master)
    status, told = submitted.submit()
    assert (status, told["exit_status"]) == (0, 0)
    assert told["pipelines"][0]["rows"]["inserted"] == 20
    assert submitted.ids() == list(range(20))
    [application] = applications(spark_cluster)
    logs = spark_cluster.executor_logs(application)
    assert any("Finished task" in log for log in logs.values()), "executors did the work"

    # As on platforms that have no folder: the project is an archive, and the result is kept.
    job = Job.of(load_project(submitted.folder.path), (), "spark-submit", spark_minor())
    (tmp_path / "project.zip").write_bytes(job.archive())
    kept = tmp_path / "result.json"
    given = ["--esker-project", str(tmp_path / "project.zip"), "--esker-result", str(kept)]
    status, told = submitted.submit(*given, "--esker-pipelines", "nothing")
    assert (status, told["exit_status"]) == (2, 2)
    assert told["error"]["code"] == UnknownPipeline.code
    assert json.loads(kept.read_text()) == told


@pytest.mark.soak
@pytest.mark.process
@pytest.mark.server
def test_work_stays_in_the_driver_when_told_so(spark_cluster: SparkCluster, tmp_path: Path) -> None:
    """Where workers do not see the driver's disk, the cluster gets no work, and every row is loaded."""
    before = applications(spark_cluster)
    submitted = Submitted(tmp_path, spark_cluster.master, **{"spark.esker.on": "driver"})
    assert submitted.submit()[0] == 0
    assert submitted.ids() == list(range(20))
    assert applications(spark_cluster) == before


def test_another_iceberg_is_refused(folder: Folder) -> None:
    """A platform's own Iceberg in front of Esker's is noticed before anything is read."""
    jvm = folder.open().engine.spark.sparkContext._jvm
    check_iceberg(jvm, RUNTIMES[spark_minor()].jars["iceberg"].rpartition(":")[2])
    with pytest.raises(OtherIceberg, match=r"Esker needs 0\.1"):
        check_iceberg(jvm, "0.1")


def test_a_platform_with_another_spark(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its PySpark is one version, and the Spark that it started is another."""
    jvm = folder.open().engine.spark.sparkContext._jvm
    monkeypatch.setattr(submitted_session, "spark_minor", lambda: "2.4")
    with pytest.raises(OtherSpark, match=r"2\.4"):
        submitted_session._check_versions(jvm)


@pytest.mark.server
def test_variables_come_from_a_secret(moto: str, tmp_path: Path) -> None:
    """What a job on AWS reads before it opens the project."""
    [packages] = (Path(__file__).parents[2] / ".cache/moto/lib").glob("python*/site-packages")
    program = (
        "import boto3, json\n"
        "from esker.pipeline.elsewhere import secret_variables\n"
        "text = json.dumps({'SHOP_PASSWORD': 'x y', 'PORT': 1})\n"
        "boto3.client('secretsmanager').create_secret(Name='esker/shop', SecretString=text)\n"
        "print(json.dumps(secret_variables('esker/shop')))\n"
    )
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(packages),
        "AWS_ENDPOINT_URL": moto,
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }
    answer = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == {"SHOP_PASSWORD": "x y", "PORT": "1"}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A project whose tables are in Glue's catalog."""
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    return Folder(tmp_path / "project", **deepcopy(AWS))


def exported(folder: Folder, platform: str, *pipelines: str, **options: Any) -> Bundle:
    return export_platform(load_project(folder.path), platform, pipelines, **options)


def document(bundle: Bundle, name: str) -> Any:
    return json.loads(bundle.files[name])


VARIANTS: dict[str, dict[str, Any]] = {
    "glue": {},
    "emr": {"application": "00f1abcd"},
    "stepfunctions": {},
    "stepfunctions of emr": {"options": Options(runner="emr", application="00f1abcd")},
    "stepfunctions on lambda": {"options": Options(runner="lambda")},
    "stepfunctions on ecs": {"options": Options(runner="ecs", subnets=("subnet-0a1b2c3d",))},
}


def variant(folder: Folder, name: str) -> Bundle:
    return exported(folder, name.partition(" ")[0], **VARIANTS[name])


@pytest.mark.parametrize("name", [*VARIANTS, "spark-submit"])
def test_no_secret_is_written(name: str, shop: Folder) -> None:
    """Not a byte of a secret is in any file, and scripts can be parsed."""
    (shop.path / ".env").write_text(f"SHOP_PASSWORD={PASSWORD}\n")
    bundle = exported(shop, name) if name == "spark-submit" else variant(shop, name)
    for file, content in bundle.files.items():
        assert PASSWORD.encode() not in (content.encode() if isinstance(content, str) else content), file
        if file.endswith(".sh"):
            assert isinstance(content, str)
            subprocess.run(["bash", "-n"], input=content, text=True, check=True)
    if name not in ("stepfunctions", "stepfunctions of emr"):
        assert bundle.variables == ("SHOP_PASSWORD",)


@pytest.mark.parametrize("name", [*VARIANTS, "spark-submit"])
def test_settings_of_spark_come_along(name: str, shop: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain setting is told to Spark; one from a variable is not, because its value may be a secret."""
    monkeypatch.setenv("SHOP_TAG", "tag-of-shop")
    shop.document["spark"] = {
        "conf": {"spark.executor.memory": "4321m", "spark.executorEnv.TAG": "${SHOP_TAG}"}
    }
    shop.save()
    bundle = exported(shop, name) if name == "spark-submit" else variant(shop, name)
    told = "".join(content for content in bundle.files.values() if isinstance(content, str))
    # The jobs of Glue are told when they are made, not by the state machine.
    # An image gets the project file, and with it what that says to Spark.
    is_told = name in ("glue", "emr", "stepfunctions of emr", "spark-submit")
    assert ("spark.executor.memory=4321m" in told) == is_told
    assert "tag-of-shop" not in told


def test_only_declarations_are_packed(shop: Folder) -> None:
    """What the project refers to comes along, and its modules; data, keys and what was exported do not."""
    needed = {"esker.yml", "contracts/orders.odcs.yaml", "sql/copy.sql", "sql/orders.sql"}
    needed |= {"sources/feed.py", "lib/deep/paging.py", "search/works.sql", "search/staged.sql"}
    contract = "apiVersion: v3.1.0\nkind: DataContract\nid: o\nversion: 1.0.0\nstatus: active\n"
    contract += "schema:\n  - name: orders\n    properties:\n      - {name: id, logicalType: integer}\n"
    shop.write("contracts/orders.odcs.yaml", contract)
    for name in ("sql/copy.sql", "search/works.sql", "search/staged.sql"):
        shop.write(name, "SELECT * FROM input")
    for name in ("sql/orders.sql", "sources/feed.py", "lib/deep/paging.py"):
        shop.write(name, "")
    for name in (
        *(
            "landing/people.json",
            "landing/list.yml",
            "keys/gcp.json",
            ".env",
            ".esker/x.py",
            "sql/old/no.sql",
        ),
        *("deploy/glue/jars.json", "deploy/glue/run.py", "deploy/glue/environment/lib/a.py"),
        *("venv/pyvenv.cfg", "venv/lib/b.py", "settings.toml", "sources/__pycache__/c.py"),
    ):
        shop.write(name, "")
    arguments = {"contract": "keys/gcp.json"}
    shop.document["pipelines"] = {
        "orders": {**ORDERS, "contract": "contracts/orders.odcs.yaml#orders"},
        "copy": {**COPY, "transform": {"sql": "sql/copy.sql"}},
        "feed": {
            "source": {"type": "python", "function": "sources/feed.py:feed", "arguments": arguments},
            "table": "shop.feed",
        },
        "many": {
            "source": {"type": "jdbc", "url": "jdbc:postgresql://db/shop", "tables": "public.*"},
            "table": "raw.{table}",
            "transform": "sql/{table}.sql",
        },
    }
    told = {"from": "orders", "id": ["id"], "to": {"type": "files", "path": "told"}}
    shop.document["consumers"] = {"search": {**told, "transform": "search/works.sql"}}
    staged = {"consumers": {"search": {"transform": "search/staged.sql"}}}
    shop.document["environments"] = {"staging": staged}
    shop.save()
    packed = exported(shop, "glue").files["project.zip"]
    assert isinstance(packed, bytes)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert set(archive.namelist()) == needed
        archive.extractall(shop.path.parent / "unpacked")
    for env in (None, "staging"):
        assert load_project(shop.path.parent / "unpacked", env).consumers["search"].query

    outside = shop.path.parent / "shared.sql"
    outside.write_text("SELECT * FROM input")
    shop.change("copy", transform="../shared.sql")
    with pytest.raises(CannotExport) as caught:
        exported(shop, "glue")
    assert "../shared.sql" in caught.value.reason


def test_packages_come_without_spark(shop: Folder) -> None:
    """The platform has its own PySpark; the jars are for its Spark, with their checksums."""
    bundle = exported(shop, "glue")
    requirements = str(bundle.files["requirements.txt"]).splitlines()
    names = {line.partition("==")[0] for line in requirements}
    assert {"pydantic", "pyarrow", "psycopg", "psycopg-binary"} <= names
    assert not names & {"pyspark", "py4j", "esker"}
    jars = document(bundle, "jars.json")
    assert jars["iceberg"]["coordinate"].startswith("org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:")
    assert all(len(jar["sha256"]) == 64 for jar in jars.values())


ELSEWHERE: dict[str, tuple[dict[str, Any], str]] = {
    "a catalog of this machine": ({"catalog": {"type": "sqlite"}, "pipelines": {"copy": COPY}}, "sqlite"),
    "files of this machine": (
        {"pipelines": {"sales": Folder.files_pipeline()}},
        "reads files of this machine",
    ),
    "no region": ({"store": {"type": "s3"}}, "region"),
    "no account": ({"catalog": {"type": "glue", "warehouse": "s3://lake/w"}}, "--account"),
    "a server of one's own": (
        {"store": {"type": "s3", "region": "eu-west-1", "endpoint": "http://127.0.0.1:8333"}},
        "127.0.0.1",
    ),
    "trash": ({"pipelines": {"copy": {**COPY, "table": "_esker.orders"}}}, "_esker"),
}


@pytest.mark.parametrize("case", ELSEWHERE)
def test_what_aws_cannot_run_is_refused(case: str, shop: Folder) -> None:
    """The reason is told, and nothing is written."""
    keys, why = ELSEWHERE[case]
    shop.document |= keys
    shop.save()
    with pytest.raises(CannotExport) as caught:
        exported(shop, "glue")
    assert why in caught.value.reason


def expiring(bundle: Bundle) -> list[str]:
    """Return the beginnings of keys that expire."""
    rules = [
        rule
        for name in bundle.files
        if name.startswith("lifecycle-")
        for rule in document(bundle, name)["Rules"]
    ]
    for rule in rules:
        assert {"Expiration", "AbortIncompleteMultipartUpload"} & set(rule)
        assert set(rule) <= {"ID", "Status", "Filter", "Expiration", "AbortIncompleteMultipartUpload"}
    return [rule["Filter"]["Prefix"] for rule in rules if "Expiration" in rule]


def test_no_live_file_expires(make: Make, shop: Folder) -> None:
    """Whatever a loaded table consists of, in whichever layout, no rule of the bucket matches its key."""
    works = make(lane="large", order_by="at", columns={"id": "bigint", "at": "bigint", "title": "string"})
    works.load([{"id": n, "at": 1, "title": "a"} for n in range(4)])
    works.load([{"id": 1, "at": 2, "title": "b"}, {"id": None, "at": 2, "title": "no key"}])
    warehouse = works.folder.path / ".esker" / "warehouse"
    files = [path.relative_to(warehouse).as_posix() for path in warehouse.rglob("*") if path.is_file()]
    for part in ("works/data/", "works/metadata/", "works__changes/data/", "works__quarantine/data/"):
        assert any(part in file for file in files), f"nothing in {part}"
    for home in (None, "s3://lake/w2", "s3://other/esker"):
        prefixes = expiring(exported(shop, "glue", home=home))
        keys = [f"w/{layout}" for file in files for layout in (file, file.replace("/", ".db/", 1))]
        assert [key for key in keys if key.startswith(tuple(prefixes))] == []
        for folder in ("trash", "backups"):
            assert f"w/_esker/{folder}/2026/x.parquet".startswith(tuple(prefixes)), "meant to expire"


@pytest.mark.parametrize("home", ["s3://lake/w", "s3://lake/w/shop.db"])
def test_results_do_not_expire_among_tables(home: str, shop: Folder) -> None:
    """A home of the job's files among the tables is refused."""
    with pytest.raises(CannotExport, match="nothing can be exported") as caught:
        exported(shop, "glue", home=home)
    assert "--home" in caught.value.reason


REST: dict[str, Any] = {
    "catalog": {"type": "rest", "uri": "https://catalog.example.com", "warehouse": "lake"},
    "pipelines": {"daily": {**COPY, "table": "results.daily"}},
}


def test_no_table_expires_whose_place_is_not_known(shop: Folder) -> None:
    """Where a REST catalog puts tables only its server knows: no namespace is like what expires."""
    shop.document |= deepcopy(REST)
    shop.save()
    for home in ("s3://lake", "s3://lake/", "lake/jobs", "s3://lake/_esker/trash", "s3://lake/a b"):
        with pytest.raises(CannotExport) as caught:
            exported(shop, "glue", account="123456789012", home=home)
        assert "--home s3://bucket/path" in caught.value.reason
    bundle = exported(shop, "glue", account="123456789012", home="s3://lake/results")
    assert expiring(bundle) == ["results/_esker/results/"]
    for table in ("_esker.results", "results._esker.results"):
        shop.document["pipelines"]["other"] = {**COPY, "table": table}
        shop.save()
        with pytest.raises(CannotExport) as caught:
            exported(shop, "glue", "daily", account="123456789012", home="s3://lake/results")
        assert table in caught.value.reason


def test_no_table_of_another_pipeline_expires(shop: Folder) -> None:
    """Tables of pipelines that are not exported are looked at, too."""
    shop.document["connections"]["second"] = {**GLUE, "warehouse": "s3://other/tables"}
    shop.document["pipelines"]["second"] = {**COPY, "catalog": "second"}
    shop.save()
    with pytest.raises(CannotExport) as caught:
        exported(shop, "glue", "orders", home="s3://other/tables/gold.db")
    assert "--home" in caught.value.reason


def test_rights_are_those_that_are_needed(shop: Folder) -> None:
    """What a pipeline reads and none writes can be read and not written; nothing is granted on nothing."""
    shop.document["connections"]["second"] = {**GLUE, "warehouse": "s3://other/tables"}
    sql = "SELECT o.id FROM shop.orders o, `ref`.`rates` r -- FROM no.no\n"
    sql += "JOIN second.dim.days AS d ON d.id = o.id"
    shop.document["pipelines"]["mart"] = {**COPY, "source": {"type": "query", "sql": sql}, "table": "mart.x"}
    shop.save()
    statements = {
        each["Sid"]: each for each in document(exported(shop, "glue", "mart"), "policy.json")["Statement"]
    }
    arn = "arn:aws:glue:eu-west-1:123456789012"
    assert statements["TablesRead"]["Resource"] == [
        f"{arn}:catalog",
        *(f"{arn}:database/{name}" for name in ("shop", "ref", "dim")),
        *(f"{arn}:table/{t}{e}" for t in ("shop/orders", "ref/rates", "dim/days") for e in ("", "__*")),
    ]
    assert not [action for action in statements["TablesRead"]["Action"] if "Get" not in action]
    assert statements["Tables"]["Resource"] == [
        f"{arn}:catalog",
        f"{arn}:database/mart",
        f"{arn}:table/mart/*",
    ]
    assert statements["TableFiles"]["Resource"] == ["arn:aws:s3:::lake/w/*"]
    assert statements["TableFilesRead"]["Resource"] == ["arn:aws:s3:::other/tables/*"]
    assert statements["TableFilesRead"]["Action"] == ["s3:GetObject"]
    whole = document(exported(shop, "glue"), "policy.json")["Statement"]
    [read] = [each for each in whole if each["Sid"] == "TablesRead"]
    assert not [name for name in read["Resource"] if "shop" in name], "orders is written, too"

    shop.document |= deepcopy(REST)
    shop.save()
    bundle = exported(shop, "emr", account="123456789012", home="s3://lake/jobs")
    assert all(each["Resource"] for each in document(bundle, "policy.json")["Statement"])
    assert any('catalog "lake"' in note and "by hand" in note for note in bundle.notes)


AWS_COMMAND = """#!/usr/bin/env bash
echo "$1 $2" >> "$ASKED"
case "$1 $2" in
  "s3api get-bucket-lifecycle-configuration") cat "$RULES"; exit "$(cat "$RULES.status")" ;;
  "$FAILING") echo "An error occurred ($ERROR) when calling $2" >&2; exit 254 ;;
esac
"""
SET = "s3api put-bucket-lifecycle-configuration"
MADE = "glue create-job"


class Commands:
    """The exported create.sh, with a command line of AWS that answers as told."""

    def __init__(self, place: Path) -> None:
        self.place = place
        (place / "bin").mkdir()
        (place / "bin" / "aws").write_text(AWS_COMMAND)
        (place / "bin" / "aws").chmod(0o755)

    def run(
        self, rules: str = "", status: int = 0, failing: str = "", error: str = ""
    ) -> tuple[int, list[str]]:
        """Return the exit status and what AWS was asked for."""
        asked = self.place / "asked"
        asked.write_text("")
        (self.place / "rules").write_text(rules)
        (self.place / "rules.status").write_text(str(status))
        environment = {
            "PATH": f"{self.place / 'bin'}:{os.environ['PATH']}",
            "ASKED": str(asked),
            "RULES": str(self.place / "rules"),
            "FAILING": failing,
            "ERROR": error,
        }
        command = ["bash", str(self.place / "create.sh")]
        answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return answer.returncode, asked.read_text().splitlines()


def test_rules_of_others_stay(shop: Folder, tmp_path: Path) -> None:
    """The rules of a bucket are set only where there are none but those of this project."""
    commands = Commands(write(exported(shop, "glue").files, tmp_path / "exported"))
    own = "\t".join(
        rule["ID"] for rule in json.loads((commands.place / "lifecycle-lake.json").read_text())["Rules"]
    )
    none = "An error occurred (NoSuchLifecycleConfiguration) when calling it"
    for rules, status in ((none, 254), ("", 0), (own, 0)):
        ended, asked = commands.run(rules, status)
        assert (ended, SET in asked, MADE in asked) == (0, True, True), rules
    many = "\n".join(f"rule-{n}" for n in range(20_000))
    for rules in ("legal-hold", f"{own}\tlegal-hold", "None", own.replace("shop", "shop_2"), many):
        ended, asked = commands.run(rules)
        assert (ended, SET in asked, MADE in asked) == (0, False, True), rules[:100]
    ended, asked = commands.run("An error occurred (AccessDenied) when calling it", 254)
    assert (ended, SET in asked, MADE in asked) == (1, False, False)


@pytest.mark.parametrize("name", ["glue", "stepfunctions"])
def test_creating_stops_at_the_first_failure(name: str, shop: Folder, tmp_path: Path) -> None:
    """What is there already is left; after any other failure nothing more is made."""
    commands = Commands(write(exported(shop, name).files, tmp_path / "exported"))
    step = "iam create-role"
    ended, asked = commands.run(failing=step, error="EntityAlreadyExists")
    assert ended == 0
    assert len(asked) > 2
    assert commands.run(failing=step, error="AccessDenied") == (1, [step])


def test_names_of_folders_are_no_commands(tmp_path: Path) -> None:
    """A folder is handed over as it is named, whatever its name means to a shell."""
    folder = Folder(tmp_path / 'a "b" $(touch made) `touch made`')
    place = write(exported(folder, "spark-submit").files, tmp_path / "exported")
    told = tmp_path / "told"
    for name, text in {"python": "echo jars", "spark": f'printf "%s\\n" "$@" > {told}'}.items():
        (place / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (place / name).chmod(0o755)
    environment = os.environ | {"ESKER_PYTHON": str(place / "python"), "SPARK_SUBMIT": str(place / "spark")}
    subprocess.run(["bash", "submit.sh"], env=environment, cwd=place, check=True)
    assert str(folder.path) in told.read_text().splitlines()
    assert not (place / "made").exists()


def test_the_unpacked_project_is_removed(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing of an archive stays behind; a result that cannot be kept is said and changes nothing."""
    archive = tmp_path / "project.zip"
    archive.write_bytes(Job.of(load_project(folder.path), (), "spark-submit", spark_minor()).archive())
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(unpacked))
    given = ["--esker-project", str(archive), "--esker-result", str(tmp_path / "none" / "result.json")]
    with pytest.raises(SystemExit) as ended:
        main([*given, "--esker-pipelines", "nothing"])
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert json.loads(said.out)["error"]["code"] == UnknownPipeline.code
    assert "could not be written" in said.err
    assert list(unpacked.iterdir()) == []


@pytest.mark.server
def test_aws_takes_what_is_written(moto: str, shop: Folder, tmp_path: Path) -> None:
    """Every request passes the checks of Amazon's client, and is there afterwards as it was written."""
    python = found(".cache/moto/bin/python")
    if python is None:
        missing("moto", "call tests/servers/install.sh")
    for name in VARIANTS:
        write(variant(shop, name).files, tmp_path / name)
    program = Path(__file__).with_name("aws_requests.py")
    answer = subprocess.run(
        [python, str(program), moto, str(tmp_path)],
        env={"PATH": os.environ["PATH"], "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    there = json.loads(answer.stdout)
    job = json.loads((tmp_path / "glue" / "job.json").read_text())
    assert there["job"] == {key: job[key] for key in there["job"]}
    assert there["databases"] == ["gold", "shop"]
    rules = json.loads((tmp_path / "glue" / "lifecycle-lake.json").read_text())["Rules"]
    assert sorted(there["rules"]) == sorted(rule["ID"] for rule in rules)
    assert there["machines"] == ["esker-shop", "esker-shop"]
    assert there["run"]["sparkSubmit"]["entryPoint"] == "s3://lake/esker/shop/run.py"
    assert there["step"] == ["esker-shop"]


def test_pipelines_run_in_order_and_only_what_is_worth_it_again(shop: Folder) -> None:
    """The state machine starts what feeds others first; it repeats what an error says is worth it."""
    machine = document(exported(shop, "stepfunctions"), "state-machine.json")
    states = machine["States"]
    order, state = [], machine["StartAt"]
    while states[state]["Type"] != "Succeed":
        order.append(state)
        state = states[state]["Next"]
    assert order == ["Begin orders", "Run orders", "Begin copy", "Run copy"]
    again, *others = states["Judge orders"]["Choices"]
    assert again["And"][1] == {"Variable": "$.ended.told.retry", "BooleanEquals": True}
    assert again["Next"] == "Count orders"
    judged = {choice["NumericEquals"]: choice["Next"] for choice in others}
    assert judged == {3: "Contract broken", 5: "Fenced", 6: "Held"}
    assert states["Judge orders"]["Default"] == "Failed"
    assert all(states[end]["Type"] == "Fail" for end in ("Contract broken", "Fenced", "Held", "Failed"))


RETRIED = (
    PublishUnknown("t", "x"),
    SchemaMoved("t"),
    CatalogUnreachable("lake", "x"),
    PipelineBusy("p", "x"),
    RowsLost(),
    RepairOutdated("t"),
)
FINAL = (
    Fenced("p", "t", "r", "no"),
    Held("p", "t", ()),
    UnknownPipeline("p", []),
    NullCursor("t", "changed", 2),
)


@pytest.mark.parametrize("error", [*RETRIED, *FINAL], ids=lambda error: type(error).__name__)
def test_each_error_says_whether_it_is_worth_a_retry(
    error: EskerError, folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a job writes down for the state machine follows from the error's own outcome."""

    def fail(*_: object) -> OpenProject:
        raise error

    monkeypatch.setattr(submitted, "open_project", fail)
    with pytest.raises(SystemExit):
        main(["--esker-project", str(folder.path)])
    told = json.loads(capsys.readouterr().out)
    assert told["retry"] == (error in RETRIED)
    assert told["exit_status"] == error.exit_status
    with pytest.raises(submitted.WorkFailed, match=f"exit status {error.exit_status}"):
        submitted.handler({"arguments": ["--esker-project", str(folder.path)]}, None)


def consuming(shop: Folder) -> Folder:
    """Give the project consumers: one whose rows Spark must join, and one of a table without a key."""
    to = {"type": "sns", "topic": "arn:aws:sns:eu-west-1:123456789012:told"}
    shop.document["consumers"] = {
        "topic": {"from": "orders", "id": ["id"], "to": to},
        "joined": {
            "from": "orders",
            "id": ["id"],
            "to": to,
            "transform": "SELECT id FROM input",
        },
    }
    shop.change("orders", every="15m")
    shop.save()
    return shop


def test_the_end_of_a_reindex_waits_for_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """While a delivery is active nothing is ended: the state machine must try again, and not be done."""
    folder = Folder(
        tmp_path,
        pipelines={"orders": ORDERS | {"source": {"type": "files", "path": "a.csv", "format": "csv"}}},
    )
    folder.document["consumers"] = {
        "topic": {"from": "orders", "id": ["id"], "to": {"type": "files", "path": "out"}}
    }
    folder.save()
    given = ["--esker-project", str(folder.path), "--esker-do", "reindex-end", "--esker-consumer", "topic"]
    with closing(folder.open().state) as state, held(state, "shop/consumer/topic"):
        with pytest.raises(SystemExit):
            main(given)
        told = json.loads(capsys.readouterr().out)
        assert (told["exit_status"], told["retry"]) == (1, True)
        assert told["error"]["code"] == ConsumerBusy.code
        assert str(os.getpid()) in told["error"]["reason"]


def test_an_archive_leaves_no_module_behind(tmp_path: Path) -> None:
    """A function on Lambda that is warm runs the code of the archive that is there now."""
    before, packed = list(sys.path), tmp_path / "project.zip"
    shape = (
        "import esker\nfrom warm_code.inner import made\n\n@esker.transform\ndef shape(row): return made()"
    )
    for version in (1, 2):
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("shape.py", shape)
            archive.writestr(
                "warm_code/inner.py", "from warm_version import V\n\ndef made():\n    return {'v': V}"
            )
            archive.writestr("warm_version.py", f"V = {version}")
        with project_folder(str(packed)) as folder:
            found = Transform.find("shape.py:shape", folder, ("id",), travels=False)
            assert found.bodies(pa.table({"id": [1]})) == [{"v": version}]
        assert not {"esker_source_shape", "warm_code", "warm_code.inner", "warm_version"} & set(sys.modules)
        assert sys.path == before


def test_small_work_runs_without_spark(shop: Folder) -> None:
    """Deliveries and the tasks of a reindex are calls of a function whose image has no Spark."""
    bundle = exported(consuming(shop), "stepfunctions")
    states = document(bundle, "state-machine.json")["States"]
    assert states["Run orders"]["Resource"].endswith("glue:startJobRun.sync")
    assert states["Run copy"]["Next"] == "Begin delivery to topic"
    small = states["Run delivery to topic"]
    assert small["Resource"] == "arn:aws:states:::lambda:invoke"
    assert (
        "'--esker-do', 'deliver', '--esker-consumer', 'topic', '--esker-large', 'elsewhere'"
        in small["Parameters"]["Payload"]["arguments.$"]
    )
    with_spark = states["Run delivery to topic with Spark"]["Parameters"]["Arguments"]
    assert "--esker-large" not in with_spark
    joined = states["Run delivery to joined"]["Parameters"]["Arguments"]
    assert (joined["--esker-do"], joined["--esker-consumer"]) == ("deliver", "joined")

    machine = document(bundle, "reindex-topic.json")["States"]
    every = machine["All tasks"]
    assert (every["Type"], every["MaxConcurrency"]) == ("Map", 1), "the table has no key"
    assert machine["Run reindex"]["Resource"].endswith("glue:startJobRun.sync")
    assert every["ItemProcessor"]["States"]["Run task"]["Resource"] == "arn:aws:states:::lambda:invoke"
    assert machine["All tasks"]["Next"] == "Begin end of the reindex"
    shop.change("orders", mode="upsert", key=["id"])
    machine = document(exported(shop, "stepfunctions"), "reindex-topic.json")["States"]
    assert machine["All tasks"]["MaxConcurrency"] == 4

    image = str(bundle.files["Dockerfile"])
    assert "[aws,postgres,read]" in image
    assert "fetch" not in image
    image = str(exported(shop, "stepfunctions", options=Options(runner="lambda")).files["Dockerfile"])
    assert "[aws,java,postgres,read,spark]" in image
    assert "esker.cli.fetch --spark 4.1 --to /tmp/jars iceberg aws" in image
    rights = {each["Sid"]: each for each in document(bundle, "task-policy.json")["Statement"]}
    assert rights["Topics"]["Resource"] == ["arn:aws:sns:eu-west-1:123456789012:told"] * 2
    with pytest.raises(CannotExport) as caught:
        exported(shop, "stepfunctions", options=Options(tasks="ecs"))
    assert "--subnet" in caught.value.reason


ROWS_OF_OTHERS = {"mode": "delete_insert", "key": ["id"]}
KEYED = {"mode": "upsert", "key": ["id"]}
SERVER = {"type": "rest", "uri": "https://lake.example.com", "warehouse": "lake"}
NESSIE = {"type": "nessie", "uri": "https://lake.example.com/api/v2", "warehouse": "s3://lake/n"}
ONLY_SPARK: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[bool, bool]]] = {
    "rows of a key": (ROWS_OF_OTHERS, {}, (True, False)),
    "avro": ({"format": "avro"}, {}, (True, True)),
    "avro with a key": (KEYED | {"format": "avro"}, {}, (False, True)),
    "orc": ({"format": "orc"}, {}, (True, True)),
    "version 3": ({"format_version": 3}, {}, (True, True)),
    "version 3 with a key": (KEYED | {"format_version": 3}, {}, (False, False)),
    "version 3 of a server": ({"format_version": 3}, {"catalog": SERVER}, (False, False)),
    "nessie": (KEYED, {"catalog": NESSIE}, (True, True)),
    "role": (KEYED, {"store": AWS["store"] | {"role": "arn:aws:iam::123456789012:role/lake"}}, (True, True)),
}
"""What a pipeline or the project says, and whether changes and tasks of a reindex are left to Spark."""


@pytest.mark.parametrize("name", ONLY_SPARK)
def test_what_only_spark_delivers_is_left_to_spark(name: str, shop: Folder) -> None:
    """A function without Spark would never do it, however often it is called."""
    pipeline, project, (changes, tasks) = ONLY_SPARK[name]
    consuming(shop)
    shop.document |= project
    shop.change("orders", **pipeline)
    bundle = exported(shop, "stepfunctions", account="123456789012", home="s3://lake/esker")
    glue, function = "arn:aws:states:::glue:startJobRun.sync", "arn:aws:states:::lambda:invoke"
    states = document(bundle, "state-machine.json")["States"]
    assert states["Run delivery to topic"]["Resource"] == (glue if changes else function)
    every = document(bundle, "reindex-topic.json")["States"]["All tasks"]
    assert every["ItemProcessor"]["States"]["Run task"]["Resource"] == (glue if tasks else function)
    # The job of Glue runs once at a time.
    is_parallel = "key" in pipeline and not tasks
    assert every["MaxConcurrency"] == (4 if is_parallel else 1)


def test_small_work_that_finds_out_that_it_needs_spark(
    shop: Folder, folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tables hold what the project file does not tell: what was tried without Spark is then done with it."""
    bundle = exported(consuming(shop), "stepfunctions")
    machine = document(bundle, "reindex-topic.json")["States"]["All tasks"]["ItemProcessor"]
    for states, work in (
        (document(bundle, "state-machine.json")["States"], "delivery to topic"),
        (machine["States"], "task"),
    ):
        turned = states[f"Judge {work}"]["Choices"][1]
        assert turned["And"][1] == {"Variable": "$.ended.told.needs_spark", "BooleanEquals": True}
        assert turned["Next"] == f"Begin {work} with Spark"
        with_spark = states[f"Run {work} with Spark"]
        assert with_spark["Resource"] == "arn:aws:states:::glue:startJobRun.sync"
        assert with_spark["Parameters"]["Arguments"]["--esker-consumer"] == "topic"
        assert with_spark["Next"] == states[f"Run {work}"]["Next"]
        assert all("needs_spark" not in str(each) for each in states[f"Judge {work} with Spark"]["Choices"])
    with_spark = machine["States"]["Run task with Spark"]["Parameters"]["Arguments"]
    assert with_spark["--esker-task.$"] == "States.Format('{}', $.task)"
    assert "task-with-Spark-" in with_spark["--esker-result.$"]
    states = document(exported(shop, "stepfunctions", options=Options(runner="lambda")), "state-machine.json")
    assert not [state for state in states["States"] if "with Spark" in state], "the image has Spark"

    # What such work writes down: a delivery ends with a report, a task with the error itself.
    for error in (
        SparkNotInstalled("x"),
        NotWithoutSpark("x", "why"),
        NotWrittenWithoutSpark("x", "why"),
        CatalogUnreachable("lake", "x"),
    ):

        def fail(*_: object, error: EskerError = error) -> ReadingProject:
            raise error

        monkeypatch.setattr(submitted, "open_to_deliver", fail)
        with pytest.raises(SystemExit):
            main(["--esker-project", str(folder.path), "--esker-do", "reindex-task"])
        told = json.loads(capsys.readouterr().out)
        assert told["needs_spark"] == (not isinstance(error, CatalogUnreachable))


def test_a_reindex_needs_a_state_database_that_its_tasks_reach(shop: Folder) -> None:
    """A file on the disk of the job that began it is gone before the first task looks for the plan."""
    assert "reindex-topic.json" in exported(consuming(shop), "stepfunctions").files
    del shop.document["state"]
    shop.save()
    bundle = exported(shop, "stepfunctions")
    assert [name for name in bundle.files if "reindex" in name] == []
    assert "reindex" not in str(bundle.files["create.sh"])
    assert [note for note in bundle.notes if "state: {url: postgresql" in note]
    assert "Run delivery to topic" in document(bundle, "state-machine.json")["States"]


@pytest.mark.parametrize("name", ["glue", "emr"])
def test_jobs_can_deliver(name: str, shop: Folder) -> None:
    """The runner of pipelines delivers what only Spark can, and begins and ends each reindex."""
    assert "boto3==" not in str(variant(shop, name).files["requirements.txt"])
    consuming(shop)
    consumers = shop.document["consumers"]
    consumers["topic"]["to"] = {
        "type": "sqs",
        "queue": "https://sqs.eu-west-1.amazonaws.com/123456789012/told",
    }
    consumers["joined"] = {
        **consumers["joined"],
        "transform": None,
        "enrich": {"customer": {"table": "crm.customers", "on": {"customer": "id"}}},
    }
    consumers["hook"] = {"from": "orders", "id": ["id"], "to": {"type": "webhook", "connection": "hook"}}
    shop.document["connections"]["hook"] = {"type": "webhook", "url": "https://told.example.com"}
    shop.save()
    bundle = variant(shop, name)
    packages = str(bundle.files["requirements.txt"])
    assert all(f"\n{package}==" in f"\n{packages}" for package in ("boto3", "httpx2", "stamina"))
    assert "confluent-kafka" not in packages
    rights = {each["Sid"]: each for each in document(bundle, "policy.json")["Statement"]}
    assert rights["Topics"]["Resource"] == ["arn:aws:sns:eu-west-1:123456789012:told"]
    assert rights["Queues"]["Resource"] == ["arn:aws:sqs:eu-west-1:123456789012:told"]
    # Deliveries set tags on what they join.
    assert "arn:aws:glue:eu-west-1:123456789012:table/crm/*" in rights["Tables"]["Resource"]
    only_copy = document(exported(shop, name, "copy", **VARIANTS[name]), "policy.json")["Statement"]
    assert not {"Topics", "Queues"} & {each["Sid"] for each in only_copy}, "nobody is told of orders there"


REQUESTS = {
    "create-state-machine.json": ("stepfunctions", "CreateStateMachine"),
    "create-reindex-topic.json": ("stepfunctions", "CreateStateMachine"),
    "create-function.json": ("lambda", "CreateFunction"),
    "task-definition.json": ("ecs", "RegisterTaskDefinition"),
    "create-schedule.json": ("scheduler", "CreateSchedule"),
}


@pytest.mark.parametrize("name", [name for name in VARIANTS if "stepfunctions" in name])
def test_requests_are_what_aws_takes(name: str, shop: Folder) -> None:
    """Each request has what Amazon's own client wants, and nothing that it does not know."""
    bundle = variant(consuming(shop), name)
    session = botocore.session.get_session()
    found = {file: REQUESTS[file] for file in bundle.files if file in REQUESTS}
    assert len(found) == 4, "two machines, what does small work, and a schedule"
    for file, (service, operation) in found.items():
        shape = session.get_service_model(service).operation_model(operation).input_shape
        report = ParamValidator().validate(document(bundle, file), shape)
        assert not report.has_errors(), f"{file}: {report.generate_report()}"
    assert document(bundle, "create-schedule.json")["ScheduleExpression"] == "rate(15 minutes)"
    own = variant(shop, name).files["state-machine.json"]
    assert own == bundle.files["state-machine.json"]


def every_state(machine: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, dict[str, Any]]]:
    """Yield all states with the machine that they are in, those inside a map, too."""
    for name, state in machine["States"].items():
        yield machine["States"], name, state
        if "ItemProcessor" in state:
            yield from every_state(state["ItemProcessor"])


@pytest.mark.parametrize("name", [name for name in VARIANTS if "stepfunctions" in name])
def test_every_state_leads_somewhere(name: str, shop: Folder) -> None:
    """All that is named is there, in the same machine; each can be reached, and no name is too long."""
    bundle = variant(consuming(shop), name)
    for file in ("state-machine.json", "reindex-topic.json"):
        machine = document(bundle, file)
        names = [name for _, name, _ in every_state(machine)]
        assert len(names) == len(set(names)), "Amazon wants names that are unique inside maps, too"
        for states, state_name, state in every_state(machine):
            assert len(state_name) <= 80
            named = [state.get("Next"), state.get("Default")]
            named += [each["Next"] for key in ("Choices", "Catch") for each in state.get(key, ())]
            assert {each for each in named if each} <= set(states), state_name
            is_end = state["Type"] in ("Succeed", "Fail")
            assert is_end or any(named), state_name


@pytest.mark.soak
@pytest.mark.parametrize("name", [name for name in VARIANTS if "stepfunctions" in name])
def test_the_state_machine_is_valid(name: str, shop: Folder, tmp_path: Path) -> None:
    """A validator of Amazon's States Language finds nothing wrong with it."""
    validator = found(".cache/asl_validator/node_modules/.bin/asl-validator")
    if validator is None:
        missing("the validator of state machines", "call tests/servers/install.sh soak")
    place = write(variant(consuming(shop), name).files, tmp_path / "exported")
    for file in ("state-machine.json", "reindex-topic.json"):
        subprocess.run([validator, "--json-path", str(place / file)], check=True)
