"""Pipelines for Amazon EMR 7, which runs Spark 3.5: EMR Serverless, and a step of a cluster on EC2."""

from __future__ import annotations

import shlex
from typing import Any

from esker.pipeline.export.aws import Account, Place, as_json
from esker.pipeline.export.bundle import Bundle
from esker.pipeline.export.glue import with_surroundings

MINOR = "3.5"
_RELEASE = "emr-7.10.0"
ENVIRONMENT = "environment.tar.gz"
_TIMEOUT_MINUTES = 480
_PACKING = """# A Python of its own: that of EMR is older than Esker needs. This one can be moved, and
# runs on any Linux of this processor; uv brings it (pip install uv).
rm -rf environment && uv python install --install-dir environment/all 3.11
cp -R environment/all/cpython-3.11*/. environment/ && rm -rf environment/all
environment/bin/python3.11 -m pip install --quiet --break-system-packages --no-index --no-deps wheels/*.whl
{secrets}tar -czf {environment} -C environment .
aws s3 cp {environment} "$home/{environment}\""""

_FOR_SECRETS = """# It fetches the secrets.
environment/bin/python3.11 -m pip install --quiet --break-system-packages boto3
"""


def spark_parameters(account: Account) -> dict[str, str]:
    """Return what Spark is told on its command line."""
    python = "./environment/bin/python3.11"
    return {
        **account.settings,
        "spark.jars": account.jar_places,
        "spark.archives": f"{account.in_home(ENVIRONMENT)}#environment",
        "spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON": python,
        "spark.emr-serverless.driverEnv.PYSPARK_PYTHON": python,
        "spark.executorEnv.PYSPARK_PYTHON": python,
    }


def submit_parameters(account: Account) -> str:
    """Return the same as one text."""
    settings = spark_parameters(account)
    if account.job.is_on_driver:
        # Nobody would give them work.
        settings |= {"spark.dynamicAllocation.enabled": "false", "spark.executor.instances": "1"}
    return " ".join(f"--conf {shlex.quote(f'{key}={value}')}" for key, value in settings.items())


def job_driver(account: Account, arguments: list[str]) -> dict[str, Any]:
    return {
        "sparkSubmit": {
            "entryPoint": account.in_home("run.py"),
            "entryPointArguments": arguments,
            "sparkSubmitParameters": submit_parameters(account),
        }
    }


def arguments_of(account: Account) -> list[str]:
    return [text for pair in account.arguments().items() for text in pair]


def export(account: Account, application: str | None) -> Bundle:
    """Return application, job run and step, with everything around them. Raises CannotExport."""
    job = account.job
    made = {"name": job.name, "releaseLabel": _RELEASE, "type": "SPARK"}
    run = {
        "applicationId": application or "APPLICATION",
        "executionRoleArn": account.role,
        "name": job.name,
        "jobDriver": job_driver(account, arguments_of(account)),
        "configurationOverrides": {
            "monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": account.in_home("logs/")}}
        },
        "executionTimeoutMinutes": _TIMEOUT_MINUTES,
    }
    step = {
        "Name": job.name,
        "ActionOnFailure": "CONTINUE",
        "HadoopJarStep": {"Jar": "command-runner.jar", "Args": _command(account)},
    }
    logs = account.objects(
        "Logs", [Place(account.home.bucket, f"{account.home.prefix}logs/")], ["s3:PutObject"]
    )
    files = {
        "application.json": as_json(made),
        "job-run.json": as_json(run),
        "step.json": as_json([step]),
    }
    creating = (
        # Two applications may have the same name.
        "there=$(aws emr-serverless list-applications --output text \\\n"
        f"  --query \"applications[?name=='{job.name}' && state!='TERMINATED'].id\")\n"
        'if [ -n "$there" ]; then\n'
        '  echo "there is an application already: $there" >&2\n'
        "else\n"
        "  aws emr-serverless create-application --cli-input-json file://application.json\n"
        "fi\n"
        "# Then, with the application's id in job-run.json:\n"
        "#   aws emr-serverless start-job-run --cli-input-json file://job-run.json\n"
        "# On a cluster of EC2 instead: aws emr add-steps --cluster-id ID --steps file://step.json"
    )
    return with_surroundings(
        account,
        files,
        policy=as_json(account.policy(logs)),
        service="emr-serverless.amazonaws.com",
        packing=_PACKING.format(
            environment=ENVIRONMENT,
            secrets=_FOR_SECRETS if account.secret is not None else "",
        ),
        creating=creating,
    )


def _command(account: Account) -> list[str]:
    settings = {
        key: value for key, value in spark_parameters(account).items() if "emr-serverless" not in key
    } | {
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": "./environment/bin/python3.11",
        "spark.yarn.appMasterEnv.PYSPARK_DRIVER_PYTHON": "./environment/bin/python3.11",
    }
    options = [text for key, value in settings.items() for text in ("--conf", f"{key}={value}")]
    return [
        *("spark-submit", "--deploy-mode", "cluster"),
        *options,
        account.in_home("run.py"),
        *arguments_of(account),
    ]
