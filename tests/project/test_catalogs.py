"""Each kind of catalog and store: what Iceberg is told, and which combinations are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from esker.engine.buckets import file_system
from esker.engine.catalogs import bind
from esker.engine.session import needed_jars
from esker.errors import InvalidProject, ProfileUnusable
from esker.pipeline.doctor import examine
from esker.project import Project, load_project
from esker.project.catalogs.hive import LOCK
from esker.project.sources.store_address import store_address

S3 = "store: {type: s3, region: eu-west-1, access_key: '${S3_KEY}', secret_key: '${S3_SECRET}'}"
PLAIN_S3 = "store: {type: s3, region: eu-west-1}"
ROLE = "store: {type: s3, region: eu-west-1, role: 'arn:aws:iam::111122223333:role/esker'}"
ARN = "arn:aws:s3tables:eu-west-1:111122223333:bucket/lake"
GLUE = "catalog: {type: glue, warehouse: 's3://lake/tables'}"
NESSIE = "catalog: {type: nessie, uri: 'http://lake:19120/api/v2', warehouse: wh"
HIVE = "catalog: {type: hive, uri: 'thrift://lake:9083', warehouse: wh}"
HADOOP = "catalog: {type: hadoop, warehouse: wh}"
REST = "catalog: {type: rest, uri: 'http://lake:8181', warehouse: lake"
AZURE = "store: {type: azure, account: museum, account_key: '${AZURE_KEY}'}"
IN_AZURE = "abfss://lake@museum.dfs.core.windows.net/wh"


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("S3_KEY", "S3_SECRET", "CREDENTIAL", "TOKEN", "PASSWORD", "AZURE_KEY"):
        monkeypatch.setenv(name, f"value-of-{name.lower()}")
    monkeypatch.setenv("CREDENTIAL", "client:value-of-credential")


def load(folder: Path, *lines: str) -> Project:
    (folder / "esker.yml").write_text("\n".join(["project: shop", *lines]) + "\n")
    return load_project(folder)


def settings(folder: Path, *lines: str) -> dict[str, str]:
    """Return what Iceberg is told of the project's catalog; no secret is shown by the way."""
    project = load(folder, *lines)
    binding = bind(project.catalog, project)
    assert "value-of-" not in repr(project) + repr(binding)
    return dict(binding.settings) | {f"java {key}": value for key, value in binding.java.items()}


def test_glue_takes_region_and_keys_from_the_store(tmp_path: Path) -> None:
    """Files by S3's own keys; Glue's client finds them only in its process."""
    told = settings(tmp_path, GLUE[:-1] + ", account: '111122223333', endpoint: 'http://moto:5000'}", S3)
    assert (told["type"], told["warehouse"]) == ("glue", "s3://lake/tables")
    assert (told["glue.id"], told["glue.endpoint"]) == ("111122223333", "http://moto:5000")
    assert told["client.region"] == "eu-west-1"
    assert told["s3.access-key-id"] == told["java aws.accessKeyId"] == "value-of-s3_key"
    assert told["java aws.secretAccessKey"] == "value-of-s3_secret"
    plain = settings(tmp_path, GLUE, PLAIN_S3)
    assert not [key for key in plain if "key" in key.lower()]
    assert needed_jars(load(tmp_path, GLUE, PLAIN_S3)) == ["iceberg", "aws"]


def test_a_role_is_assumed_by_iceberg_and_by_arrow(tmp_path: Path) -> None:
    """With what the AWS environment has; the process itself leaves the files to Spark."""
    told = settings(tmp_path, GLUE, ROLE[:-1] + ", external_id: museum}")
    assert told["client.factory"] == "org.apache.iceberg.aws.AssumeRoleAwsClientFactory"
    assert told["client.assume-role.arn"] == "arn:aws:iam::111122223333:role/esker"
    assert (told["client.assume-role.region"], told["client.assume-role.external-id"]) == (
        "eu-west-1",
        "museum",
    )
    project = load(tmp_path, GLUE, ROLE)
    assert bind(project.catalog, project).bucket is None


def test_a_profile_is_read_from_amazons_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its keys are used as if they stood in the project, and told to nobody."""
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = other\n[museum]\naws_access_key_id = value-of-profile_key\n"
        "aws_secret_access_key = value-of-profile_secret\naws_session_token = value-of-profile_token\n"
    )
    (tmp_path / "config").write_text("[profile signs_in]\nsso_session = museum\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    store = "store: {type: s3, region: eu-west-1, profile: museum}"
    told = settings(tmp_path, GLUE, store)
    assert told["s3.access-key-id"] == told["java aws.accessKeyId"] == "value-of-profile_key"
    assert told["s3.session-token"] == told["java aws.sessionToken"] == "value-of-profile_token"
    for profile, why in (("signs_in", "another way"), ("nobody", "no such profile"), ("default", "no keys")):
        project = load(tmp_path, GLUE, store.replace("museum", profile))
        with pytest.raises(ProfileUnusable) as caught:
            bind(project.catalog, project)
        assert why in (caught.value.reason or ""), profile
    found = list(examine(project))
    assert (found[-1].check, found[-1].ok) == ("keys of lake", False), (
        "the doctor says it, and starts nothing"
    )
    assert found[-1].detail.startswith(ProfileUnusable.code)
    address = store_address("s3://landing/*.csv")
    assert address is not None
    project = load(tmp_path, store)
    assert file_system(address, project.store).region == "eu-west-1"


def test_s3_tables_are_signed_for(tmp_path: Path) -> None:
    """Region and address come from the ARN, keys from the store, or from the AWS environment."""
    told = settings(tmp_path, f"catalog: {{type: s3tables, warehouse: '{ARN}'}}", S3)
    assert (told["type"], told["warehouse"]) == ("rest", ARN)
    assert told["uri"] == "https://s3tables.eu-west-1.amazonaws.com/iceberg"
    assert (told["rest.auth.type"], told["rest.signing-name"]) == ("sigv4", "s3tables")
    assert (told["rest.signing-region"], told["rest.access-key-id"]) == ("eu-west-1", "value-of-s3_key")
    alone = settings(tmp_path, f"catalog: {{type: s3tables, warehouse: '{ARN}'}}")
    assert (alone["client.region"], alone["io-impl"].rpartition(".")[2]) == ("eu-west-1", "S3FileIO")
    assert "rest.access-key-id" not in alone


def test_ways_into_a_rest_catalog(tmp_path: Path) -> None:
    """One of four; keys to the files may come from the server."""
    basic = settings(tmp_path, REST + ", user: esker, password: '${PASSWORD}'}", PLAIN_S3)
    assert (basic["rest.auth.type"], basic["rest.auth.basic.username"]) == ("basic", "esker")
    assert basic["rest.auth.basic.password"] == "value-of-password"
    signed = settings(tmp_path, REST + ", sigv4: {region: eu-west-1, service: glue}}", S3)
    assert (signed["rest.auth.type"], signed["rest.signing-name"]) == ("sigv4", "glue")
    assert signed["rest.secret-access-key"] == "value-of-s3_secret"
    vended = settings(tmp_path, REST + ", token: '${TOKEN}', vended_credentials: true}", PLAIN_S3)
    assert vended["header.X-Iceberg-Access-Delegation"] == "vended-credentials"
    assert vended["token"] == "value-of-token"


def test_ways_into_nessie(tmp_path: Path) -> None:
    """A token, a user, or OAuth2; the branch is main unless it is said."""
    assert settings(tmp_path, NESSIE + "}")["ref"] == "main"
    told = settings(tmp_path, NESSIE + ", ref: staging, token: '${TOKEN}'}")
    assert (told["ref"], told["authentication.type"]) == ("staging", "BEARER")
    basic = settings(tmp_path, NESSIE + ", user: esker, password: '${PASSWORD}'}")
    assert (basic["authentication.type"], basic["authentication.password"]) == ("BASIC", "value-of-password")
    oauth = settings(
        tmp_path, NESSIE + ", credential: '${CREDENTIAL}', oauth2_server_uri: 'http://id/token', scope: all}"
    )
    assert oauth["authentication.oauth2.client-id"] == "client"
    assert oauth["authentication.oauth2.client-secret"] == "value-of-credential"
    assert oauth["authentication.oauth2.client-scopes"] == "all"


def test_folders_and_metastores(tmp_path: Path) -> None:
    """Neither needs a jar beyond Iceberg's; folders of a project are beside it."""
    told = settings(tmp_path, HIVE.replace("thrift://lake:9083", "thrift://a:9083, thrift://b:9083"))
    assert (told["type"], told["uri"]) == ("hive", "thrift://a:9083,thrift://b:9083")
    assert told["warehouse"] == f"file://{tmp_path / 'wh'}"
    project = load(tmp_path, HADOOP)
    binding = bind(project.catalog, project)
    assert (binding.settings["type"], binding.folders) == ("hadoop", (tmp_path / "wh",))
    assert needed_jars(project) == ["iceberg"]
    assert bind(project.catalog, project).bucket is None


def test_tables_in_google_and_azure(tmp_path: Path) -> None:
    """Each cloud's client is fetched for those who use it, and told as Iceberg wants it."""
    in_google = "catalog: {type: sqlite, warehouse: 'gs://lake/wh'}"
    google = settings(
        tmp_path,
        in_google,
        "store: {type: gcs, endpoint: 'http://gcs:4443', project: museum, anonymous: true}",
    )
    assert google["io-impl"] == "org.apache.iceberg.gcp.gcs.GCSFileIO"
    assert (google["gcs.service.host"], google["gcs.project-id"]) == ("http://gcs:4443", "museum")
    assert google["gcs.no-auth"] == "true"
    assert needed_jars(load(tmp_path, in_google, "store: {type: gcs}")) == ["iceberg", "sqlite", "gcp"]

    in_azure = f"catalog: {{type: sqlite, warehouse: '{IN_AZURE}'}}"
    azure = settings(tmp_path, in_azure, AZURE)
    assert azure["io-impl"] == "org.apache.iceberg.azure.adlsv2.ADLSFileIO"
    assert azure["adls.auth.shared-key.account.name"] == "museum"
    assert azure["adls.auth.shared-key.account.key"] == "value-of-azure_key"
    by_signature = AZURE.replace("account_key: '${AZURE_KEY}'", "sas_token: '${AZURE_KEY}'")
    assert (
        settings(tmp_path, in_azure, by_signature)["adls.sas-token.museum.dfs.core.windows.net"]
        == "value-of-azure_key"
    )
    assert needed_jars(load(tmp_path, in_azure, AZURE)) == ["iceberg", "sqlite", "azure"]


def test_several_kinds_in_one_project(tmp_path: Path) -> None:
    """Each catalog has its own store, and all their jars are there."""
    project = load(
        tmp_path,
        GLUE,
        S3,
        "connections:",
        f"  archive: {{type: sqlite, path: a.db, warehouse: '{IN_AZURE}', store: blobs}}",
        "  blobs: {type: azure, account: museum}",
        "  metastore: {type: hive, uri: 'thrift://lake:9083', warehouse: 'gs://lake/wh', store: google}",
        "  google: {type: gcs}",
        "  folders: {type: hadoop, warehouse: wh}",
        "pipelines:",
        "  a: {source: {type: files, path: x, format: csv}, table: a.b, catalog: folders}",
        "  b: {source: {type: files, path: x, format: csv}, table: a.b, mode: upsert, key: [id], "
        "catalog: metastore}",
    )
    assert list(project.catalogs()) == ["lake", "archive", "metastore", "folders"]
    assert needed_jars(project) == ["iceberg", "aws", "sqlite", "azure", "gcp"]
    assert [warning.partition(":")[0] for warning in project.warnings()] == ["catalog folders"]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([GLUE], "the warehouse is in S3: say how to reach it"),
        ([GLUE.replace("s3://", "gs://"), "store: {type: gcs}"], "Glue's tables are in S3"),
        ([GLUE.replace("s3://lake/tables", "wh"), S3], "Glue's tables are in S3"),
        ([GLUE[:-1] + ", properties: {glue.id: x}}", S3], '"glue.id" has a key of its own'),
        ([GLUE[:-1] + ", endpoint: 'http://moto'}", ROLE], "does not go to endpoint: with role:"),
        ([GLUE, "store: {type: gcs}"], "the store is of type gcs, and the warehouse of s3"),
        (["catalog: {type: s3tables, warehouse: 's3://lake'}"], "write the ARN of a table bucket"),
        ([f"catalog: {{type: s3tables, warehouse: '{ARN}'}}", ROLE], "does not sign requests with role:"),
        ([f"catalog: {{type: s3tables, warehouse: '{ARN}'}}", "store: {type: gcs}"], "S3 Tables are in S3"),
        ([REST + ", user: esker}"], "user is of no use without password"),
        ([REST + ", password: '${PASSWORD}'}"], "password is of no use without user"),
        ([REST + ", user: e, password: '${PASSWORD}', token: '${TOKEN}'}"], "token and user are two ways in"),
        ([REST + ", user: esker, password: sesame}"], "a secret stands here as text"),
        ([REST + ", token: '${TOKEN}', sigv4: {region: a}}"], "token and sigv4 are two ways in: write one"),
        ([REST + ", sigv4: {region: eu-west-1}}", ROLE], "does not sign requests with role:"),
        ([REST + ", vended_credentials: true}", S3], "the server hands out the keys, and the store has keys"),
        ([REST + ", vended_credentials: true}", AZURE], "the server hands out the keys, and the store has"),
        ([NESSIE.replace("/api/v2", "/iceberg") + "}"], "take type: rest instead"),
        ([NESSIE + ", token: '${TOKEN}', user: a, password: '${PASSWORD}'}"], "three ways in: write one"),
        ([NESSIE + ", credential: '${CREDENTIAL}'}"], "credential is of no use without oauth2_server_uri"),
        ([NESSIE + ", scope: all}"], "scope is of no use without credential"),
        ([NESSIE.replace("wh", "ftp://wh") + "}"], 'tables cannot be kept in "ftp://"'),
        ([HIVE.replace("thrift", "http")], "is no metastore; write thrift://host:9083"),
        ([HIVE.replace("lake:9083", "me:pw@lake:9083")], "is no metastore"),
        ([HADOOP.replace("wh", "'s3://lake/wh'"), S3], "which object stores cannot do"),
        ([HADOOP[:-1] + ", store: x}"], "catalog.store"),
        (
            [
                HADOOP,
                "pipelines: {a: {source: {type: files, path: x, format: csv}, table: a.b, mode: upsert, "
                "key: [id]}}",
            ],
            "pipelines.a.mode: a hadoop catalog does not keep two writers apart",
        ),
        (
            [
                "connections: {folders: {type: hadoop, warehouse: wh}}",
                "pipelines: {a: {source: {type: files, path: x, format: csv}, table: a.b, mode: replace, "
                "key: [id], catalog: folders}}",
            ],
            "pipelines.a.mode: a hadoop catalog does not keep two writers apart",
        ),
        *(
            (
                [
                    HIVE[:-1] + f", properties: {{{where}{LOCK}: 'false'}}}}",
                    "pipelines: {a: {source: {type: files, path: x, format: csv}, table: a.b, mode: upsert, "
                    "key: [id]}}",
                ],
                f"pipelines.a.mode: with {where}{LOCK}: false a Hive Metastore takes no lock",
            )
            for where in ("hadoop.iceberg.", "table-default.", "table-override.")
        ),
        (
            [
                HIVE,
                "pipelines: {a: {source: {type: files, path: x, format: csv}, table: a.b, mode: upsert, "
                f"key: [id], properties: {{{LOCK}: 'False'}}}}}}",
            ],
            f"pipelines.a.mode: with {LOCK}: false a Hive Metastore takes no lock",
        ),
        ([S3[:-1] + ", profile: museum}"], "access_key, profile and role are three ways in: write one"),
        ([S3[:-1] + ", external_id: museum}"], "external_id is of no use without role"),
        (["store: {type: s3, role: esker}"], "store.role"),
        (["catalog: {type: sqlite, warehouse: 's3://lake'}", "store: {type: s3, anonymous: true}"], "a key"),
        (["catalog: {type: sqlite, warehouse: 'gs://lake'}", "store: {type: gcs, anonymous: true}"], "a key"),
        (["catalog: {type: sqlite, warehouse: 'gs://lake'}"], "the warehouse is in Google Cloud Storage"),
        (["store: {type: gcs, hmac_key: '${PASSWORD}'}"], "hmac_key: and hmac_secret: belong together"),
        (
            ["store: {type: gcs, hmac_key: '${PASSWORD}', hmac_secret: '${PASSWORD}', anonymous: true}"],
            "write hmac_key:, or anonymous: true, not both",
        ),
        ([f"catalog: {{type: sqlite, warehouse: '{IN_AZURE}'}}"], "the warehouse is in Azure"),
        (
            [f"catalog: {{type: sqlite, warehouse: '{IN_AZURE.replace('museum', 'other')}'}}", AZURE],
            "the store is account museum, and the warehouse of other",
        ),
        (["catalog: {type: sqlite, warehouse: 'abfss://lake/wh'}", AZURE], "abfss://container@account"),
        (
            [
                f"catalog: {{type: sqlite, warehouse: '{IN_AZURE}'}}",
                "store: {type: azure, account: museum, tenant_id: t, client_id: c, "
                "client_secret: '${PASSWORD}'}",
            ],
            "set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET in the environment",
        ),
        (
            [
                GLUE,
                S3,
                "connections: {other: {type: sqlite, warehouse: 's3://b', path: b.db, store: far}, "
                "far: {type: s3}}",
            ],
            "connections.other.store: beside a Glue catalog with keys, every store needs keys",
        ),
        (
            [
                GLUE,
                S3,
                "connections: {other: {type: glue, warehouse: 's3://b', store: far}, "
                "far: {type: s3, access_key: '${TOKEN}', secret_key: '${TOKEN}'}}",
            ],
            "all Glue catalogs of a project have the same keys",
        ),
    ],
)
def test_mistakes_are_named(lines: list[str], says: str, tmp_path: Path) -> None:
    """Each is found before anything starts, at its place."""
    with pytest.raises(InvalidProject) as caught:
        load(tmp_path, *lines)
    [found] = caught.value.problems
    assert says in str(found)


def test_a_metastore_without_its_lock_is_told_of(tmp_path: Path) -> None:
    """Modes without a key go on; people should know what they chose."""
    assert load(tmp_path, HIVE[:-1] + f", properties: {{hadoop.iceberg.{LOCK}: 'true'}}}}").warnings() == ()
    project = load(
        tmp_path,
        HIVE[:-1] + f", properties: {{hadoop.iceberg.{LOCK}: 'false'}}}}",
        "pipelines: {a: {source: {type: files, path: x, format: csv}, table: a.b}}",
    )
    [warning] = project.warnings()
    assert "takes no lock" in warning
