"""An image for small work on AWS, as a function on Lambda or a task of ECS: deliveries, small pipelines.

Deliveries and tasks of a reindex need no Spark, so an image for them has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import esker
from esker.engine.pins import PYSPARK, minor_of
from esker.pipeline.export.aws import Account
from esker.pipeline.export.consumers import extras_for
from esker.pipeline.export.options import TaskRunner

_OF_CATALOGS = {"glue": "glue", "s3tables": "glue", "hive": "hive", "jdbc": "sql-postgres"}
_OF_SOURCES = {"http": "http", "oai_pmh": "oai", "dlt": "dlt"}
_SECONDS = 900
"""The longest that Lambda lets a function run."""

_IMAGE = """# Python, Esker and what it needs; the project itself comes from S3 with each call.
ARG PYTHON=python:3.12-slim
FROM ${{PYTHON}}
WORKDIR /esker
COPY wheels wheels
RUN pip install --no-cache-dir "$(ls wheels/esker-*.whl)[{extras}]" {further}
{jars}# Lambda can write below /tmp only.
ENV HOME=/tmp PYTHONUNBUFFERED=1
ENTRYPOINT ["python", "-m", "awslambdaric"]
CMD ["esker.cli.submitted.handler"]
"""
_JARS = """# Spark's jars, so that no call fetches them.
ENV ESKER_CACHE=/opt/esker
RUN python -m esker.cli.fetch --spark {minor} --to /tmp/jars {names} && rm -r /tmp/jars
"""
_BUILD = """#!/usr/bin/env bash
# Builds the image and brings it, and the project, to AWS. Needs Docker, pip and the AWS command line.
#   ESKER_WHEEL  a wheel of Esker, or how pip finds one. Default: esker=={version}
set -euo pipefail
cd "$(dirname "$0")"
aws ecr describe-repositories --repository-names {name} >/dev/null 2>&1 ||
  aws ecr create-repository --repository-name {name} >/dev/null
rm -rf wheels && python3 -m pip wheel --quiet --no-deps "${{ESKER_WHEEL:-esker=={version}}}" -w wheels
docker build --platform linux/amd64 --tag {image} .
aws ecr get-login-password --region {region} | docker login --username AWS --password-stdin {registry}
docker push {image}
aws s3 cp project.zip {home}/project.zip
"""


@dataclass(frozen=True)
class TaskImage:
    """The image, and who runs it."""

    account: Account
    runner: TaskRunner
    consumers: tuple[str, ...]
    has_spark: bool
    """It runs pipelines, too."""
    subnets: tuple[str, ...]
    cluster: str

    @property
    def name(self) -> str:
        return f"{self.account.job.name}-task"

    @property
    def role(self) -> str:
        return f"{self.account.role}-task"

    @property
    def registry(self) -> str:
        suffix = "amazonaws.com.cn" if self.account.partition == "aws-cn" else "amazonaws.com"
        return f"{self.account.account}.dkr.ecr.{self.account.region}.{suffix}"

    @property
    def image(self) -> str:
        return f"{self.registry}/{self.name}:{esker.__version__}"

    @property
    def function(self) -> str:
        return self.account.arn("lambda", f"function:{self.name}")

    @property
    def definition(self) -> str:
        return self.account.arn("ecs", f"task-definition/{self.name}")

    def extras(self) -> list[str]:
        """Return the extras of Esker that the image needs."""
        project = self.account.job.project
        found = {"read", "aws"} | extras_for(project, self.consumers)
        if project.state.url.startswith("postgresql"):
            found.add("postgres")
        if self.has_spark:
            sources = (project.pipeline(name).source.type for name in self.account.job.pipelines)
            found |= {"spark", "java"} | {_OF_SOURCES[kind] for kind in sources if kind in _OF_SOURCES}
        return sorted(found)

    def files(self) -> dict[str, str | bytes]:
        """Return what builds the image, and what makes the function, or the definition of the task."""
        account, job = self.account, self.account.job
        catalogs = (job.project.catalog_of(job.project.pipeline(name).catalog).type for name in job.pipelines)
        parts = sorted({_OF_CATALOGS[kind] for kind in catalogs if kind in _OF_CATALOGS})
        further = ["awslambdaric", *([f"'pyiceberg[{','.join(parts)}]'"] if parts else [])]
        jars = ""
        if self.has_spark:
            names = " ".join(jar.name for jar in job.jars)
            jars = _JARS.format(minor=minor_of(PYSPARK), names=names)
        return {
            "Dockerfile": _IMAGE.format(extras=",".join(self.extras()), further=" ".join(further), jars=jars),
            "build.sh": _BUILD.format(
                version=esker.__version__,
                image=self.image,
                registry=self.registry,
                name=self.name,
                region=account.region,
                home=account.home,
            ),
            "project.zip": job.archive(),
        }

    def request(self) -> dict[str, Any]:
        """Return what makes the function, or registers the definition of the task."""
        if self.runner == "lambda":
            return {
                "FunctionName": self.name,
                "PackageType": "Image",
                "Code": {"ImageUri": self.image},
                "Role": self.role,
                "Timeout": _SECONDS,
                "MemorySize": 4096 if self.has_spark else 1024,
                "EphemeralStorage": {"Size": 10240 if self.has_spark else 1024},
            }
        log = {"awslogs-group": f"/ecs/{self.name}", "awslogs-region": self.account.region}
        return {
            "family": self.name,
            "requiresCompatibilities": ["FARGATE"],
            "networkMode": "awsvpc",
            "cpu": "2048" if self.has_spark else "512",
            "memory": "8192" if self.has_spark else "1024",
            "executionRoleArn": self.role,
            "taskRoleArn": self.role,
            "containerDefinitions": [
                {
                    "name": "esker",
                    "image": self.image,
                    "essential": True,
                    "entryPoint": ["python", "-m", "esker.cli.submitted"],
                    "logConfiguration": {
                        "logDriver": "awslogs",
                        "options": {**log, "awslogs-stream-prefix": "esker", "awslogs-create-group": "true"},
                    },
                }
            ],
        }

    @property
    def service(self) -> str:
        return "lambda.amazonaws.com" if self.runner == "lambda" else "ecs-tasks.amazonaws.com"

    def state(self, arguments: str) -> dict[str, Any]:
        """Return the part of a state that does a piece of work; `arguments` is an expression."""
        partition = self.account.partition
        if self.runner == "lambda":
            return {
                "Resource": f"arn:{partition}:states:::lambda:invoke",
                "Parameters": {"FunctionName": self.function, "Payload": {"arguments.$": arguments}},
            }
        network = {"Subnets": list(self.subnets), "AssignPublicIp": "DISABLED"}
        return {
            "Resource": f"arn:{partition}:states:::ecs:runTask.sync",
            "Parameters": {
                "LaunchType": "FARGATE",
                "Cluster": self.cluster,
                "TaskDefinition": self.definition,
                "NetworkConfiguration": {"AwsvpcConfiguration": network},
                "Overrides": {"ContainerOverrides": [{"Name": "esker", "Command.$": arguments}]},
            },
        }

    def rights_to_start(self) -> list[dict[str, Any]]:
        """Return what the state machine may do to start the work."""
        if self.runner == "lambda":
            return [_allow("Function", ["lambda:InvokeFunction"], [self.function, f"{self.function}:*"])]
        account = self.account
        return [
            _allow("Task", ["ecs:RunTask"], [f"{self.definition}:*", self.definition]),
            # A task has no name before it runs.
            _allow("Tasks", ["ecs:StopTask", "ecs:DescribeTasks"], [account.arn("ecs", "task/*")]),
            _allow("TaskRole", ["iam:PassRole"], [self.role])
            | {"Condition": {"StringLike": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}},
            _allow(
                "TaskEvents",
                ["events:PutTargets", "events:PutRule", "events:DescribeRule"],
                [account.arn("events", "rule/StepFunctionsGetEventsForECSTaskRule")],
            ),
        ]

    def policy(self) -> dict[str, Any]:
        """Return the rights of the work itself: the tables, the targets, its log and its image."""
        account = self.account
        group = f"/aws/lambda/{self.name}" if self.runner == "lambda" else f"/ecs/{self.name}"
        logs = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"]
        further = [_allow("Logs", logs, [account.arn("logs", f"log-group:{group}*")])]
        if self.runner == "ecs":
            pull = ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer", "ecr:BatchCheckLayerAvailability"]
            further += [
                _allow("Image", pull, [account.arn("ecr", f"repository/{self.name}")]),
                _allow("Registry", ["ecr:GetAuthorizationToken"], ["*"]),
            ]
        return account.policy(*further)


def _allow(sid: str, actions: Sequence[str], resources: Sequence[str]) -> dict[str, Any]:
    return {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
