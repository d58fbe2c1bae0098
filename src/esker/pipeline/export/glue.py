"""Pipelines as a job of AWS Glue 5, which runs Spark 3.5 on Python 3.11."""

from __future__ import annotations

import shlex

import esker
from esker.pipeline.export.aws import Account, as_json
from esker.pipeline.export.bundle import Bundle
from esker.pipeline.export.platform import RUN

MINOR = "3.5"
_VERSION = "5.0"
_TIMEOUT_MINUTES = 480
PACKAGES = "packages.gluewheels.zip"

UPLOAD = """#!/usr/bin/env bash
# Brings what the job needs to its home in S3. Needs the AWS command line, and Python 3.11 with Esker and pip.
#   ESKER_WHEEL  a wheel of Esker, or how pip finds one. Default: esker=={version}
set -euo pipefail
cd "$(dirname "$0")"
home={home}
python3 -m esker.cli.fetch --spark {minor} --to jars {names} >/dev/null
rm -rf wheels && mkdir wheels
# For the platform's Python and system, whatever is here; PySpark is there already.
python3 -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.11 \\
  --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \\
  -r requirements.txt -d wheels
python3 -m pip wheel --quiet --no-deps "${{ESKER_WHEEL:-esker=={version}}}" -w wheels
ls wheels/*.whl | sed 's|^wheels/||' > wheels/requirements.txt
{packing}
aws s3 cp run.py "$home/run.py"
aws s3 cp project.zip "$home/project.zip"
aws s3 cp --recursive --exclude '*' --include '*.jar' jars "$home/jars"
"""
_PACKING = """python3 -m zipfile -c {packages} wheels
aws s3 cp {packages} "$home/{packages}\""""

MAKING = """set -euo pipefail
cd "$(dirname "$0")"
make() {
  local said
  if said=$("$@" 2>&1); then
    echo "$said"
  else
    echo "$said" >&2
    case $said in *AlreadyExists*|*IdempotentParameterMismatch*) ;; *) exit 1 ;; esac
  fi
}
"""
"""Beginning of a script that makes things: what is there already is said and left, all else stops it."""
CREATE = """#!/usr/bin/env bash
# Makes what is described here. It can be repeated: what is there already is said and left. It stops at the
# first step that fails.
{making}make aws iam create-role --role-name {name} --assume-role-policy-document file://trust.json
aws iam put-role-policy --role-name {name} --policy-name esker --policy-document file://policy.json
{secret}{databases}{rules}{job}
"""
RULES = """# Rules of a bucket are set as a whole: those that are there already must stand in the file, too.
if said=$(aws s3api get-bucket-lifecycle-configuration --bucket {bucket} \\
  --query 'Rules[].ID' --output text 2>&1); then
  others=$(tr '\\t' '\\n' <<<"$said" | grep -v '^{own}' || [ $? = 1 ])
else
  others=
  case $said in *NoSuchLifecycleConfiguration*) ;; *) echo "$said" >&2; exit 1 ;; esac
fi
if [ -n "$others" ]; then
  echo "bucket" {bucket} "has rules of its own: add those of" {file} "to them" >&2
else
  aws s3api put-bucket-lifecycle-configuration --bucket {bucket} --lifecycle-configuration file://{file}
fi
"""


def export(account: Account) -> Bundle:
    """Return the job's definition with everything around it. Raises CannotExport."""
    job = account.job
    definition = {
        "Name": job.name,
        "Description": f"Esker: {', '.join(job.pipelines)}",
        "Role": account.role,
        # A second run would find the lease taken, and end.
        "ExecutionProperty": {"MaxConcurrentRuns": 1},
        "Command": {"Name": "glueetl", "ScriptLocation": account.in_home("run.py"), "PythonVersion": "3"},
        "DefaultArguments": {
            "--job-language": "python",
            "--extra-jars": account.jar_places,
            # In front of Iceberg of Glue's own; --datalake-formats stays out.
            "--user-jars-first": "true",
            "--additional-python-modules": account.in_home(PACKAGES),
            "--python-modules-installer-option": "--no-index --no-deps",
            "--conf": " --conf ".join(f"{key}={value}" for key, value in account.settings.items()),
            "--enable-continuous-cloudwatch-log": "true",
            **account.arguments(),
        },
        # Not every failure is worth another try: see `esker export stepfunctions`.
        "MaxRetries": 0,
        "Timeout": _TIMEOUT_MINUTES,
        "GlueVersion": _VERSION,
        "WorkerType": "G.1X",
        "NumberOfWorkers": 2,
    }
    logs = {
        "Sid": "Logs",
        "Effect": "Allow",
        "Action": ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"],
        "Resource": [account.arn("logs", "log-group:/aws-glue/*")],
    }
    creating = (
        "make aws glue create-job --cli-input-json file://job.json\n"
        f"# To change the job: aws glue update-job --job-name {job.name}"
    )
    return with_surroundings(
        account,
        {"job.json": as_json(definition)},
        policy=as_json(account.policy(logs)),
        service="glue.amazonaws.com",
        packing=_PACKING.format(packages=PACKAGES),
        creating=creating,
    )


def with_surroundings(
    account: Account,
    own: dict[str, str],
    *,
    policy: str,
    service: str,
    packing: str,
    creating: str,
) -> Bundle:
    """Return a job's own files with those that every service of AWS needs."""
    job = account.job
    files: dict[str, str | bytes] = {
        **own,
        "policy.json": policy,
        "trust.json": as_json(account.trust(service)),
    }
    rules = ""
    for bucket, lifecycle in account.lifecycles().items():
        file = f"lifecycle-{bucket}.json"
        files[file] = as_json(lifecycle)
        rules += RULES.format(
            bucket=shlex.quote(bucket), file=shlex.quote(file), own=f"esker/{job.project.state_key}/"
        )
    databases = ""
    for database in account.databases():
        file = f"database-{database['DatabaseInput']['Name']}.json"
        files[file] = as_json(database)
        databases += f"make aws glue create-database --cli-input-json file://{file}\n"
    secret = ""
    if account.secret is not None:
        names = ", ".join(job.variables)
        secret = (
            f"# Put {names} into the secret {account.secret}, as one JSON object, before the first run.\n"
        )
    files |= {
        "run.py": RUN,
        "project.zip": job.archive(),
        "jars.json": as_json(job.lock()),
        "requirements.txt": job.requirements(),
        "upload.sh": UPLOAD.format(
            home=shlex.quote(str(account.home)),
            version=esker.__version__,
            minor=job.minor,
            names=" ".join(jar.name for jar in job.jars),
            packing=packing,
        ),
        "create.sh": CREATE.format(
            making=MAKING, name=job.name, secret=secret, databases=databases, rules=rules, job=creating
        ),
    }
    notes = account.notes()
    if job.is_on_driver:
        notes.append(
            "All work is done in the driver: the sources keep files on its disk, which no worker sees. Give "
            "it a larger worker rather than more of them."
        )
    if job.project.state.url.startswith("sqlite"):
        notes.append(
            "The state database is lost with each run: history and leases need state: {url: postgresql://…}."
        )
    return Bundle(files, job.variables, tuple(notes))
