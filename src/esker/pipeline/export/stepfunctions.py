"""A state machine for AWS Step Functions: pipelines in the order in which they feed each other.

A run may always be repeated, because a batch and its position are published together. Worth repeating are
only runs that could not reach a source or server (exit status 4), and those that ended without a word. A
broken contract, a held batch and a second writer want a person.
"""

from __future__ import annotations

from typing import Any, Literal

from esker.pipeline.export import emr
from esker.pipeline.export.aws import Account, as_json
from esker.pipeline.export.glue import MAKING
from esker.pipeline.export.platform import Bundle

Runner = Literal["glue", "emr"]
_TRIES = 3
_PAUSE_SECONDS = 300
_BUSY = {
    "glue": [
        "Glue.ConcurrentRunsExceededException",
        "Glue.ThrottlingException",
        "Glue.OperationTimeoutException",
    ],
    "emr": ["EmrServerless.ThrottlingException", "EmrServerless.InternalServerException"],
}
_ENDS = {
    "Held": "A batch waits for a decision: esker approve or esker reject.",
    "Fenced": "Another writer took the pipeline over. Look for a second schedule.",
    "Contract broken": "Rows break the contract: esker quarantine list.",
    "Failed": "The log of the job says why.",
}
_BY_STATUS = {3: "Contract broken", 5: "Fenced", 6: "Held"}


def export(account: Account, runner: Runner, application: str | None) -> Bundle:
    """Return the state machine with its role. Raises CannotExport."""
    job = account.job
    if runner == "emr" and application is None:
        raise job.refused("the application of EMR Serverless is not known; write --application")
    states: dict[str, Any] = {}
    following = [*job.pipelines[1:], None]
    for name, after in zip(job.pipelines, following, strict=True):
        states |= _states(account, runner, application, name, after)
    states["Done"] = {"Type": "Succeed"}
    for error, cause in _ENDS.items():
        states[error] = {"Type": "Fail", "Error": error.replace(" ", ""), "Cause": cause}
    machine = {
        "Comment": f"Esker: {', '.join(job.pipelines)}",
        "StartAt": _first(job.pipelines[0]),
        "States": states,
    }
    role = f"{account.role}-states"
    request = {"name": job.name, "definition": as_json(machine), "roleArn": role, "type": "STANDARD"}
    create = "\n".join(
        (
            "#!/usr/bin/env bash",
            "# Makes the state machine. The jobs that it runs are made by the files of "
            f"`esker export {runner}`.",
            f"{MAKING}"
            f"make aws iam create-role --role-name {job.name}-states --assume-role-policy-document file://trust.json",
            f"aws iam put-role-policy --role-name {job.name}-states --policy-name esker "
            "--policy-document file://policy.json",
            "make aws stepfunctions create-state-machine --cli-input-json file://create-state-machine.json",
            "",
        )
    )
    return Bundle(
        {
            "state-machine.json": as_json(machine),
            "create-state-machine.json": as_json(request),
            "policy.json": as_json(_policy(account, runner, application)),
            "trust.json": as_json(account.trust("states.amazonaws.com")),
            "create.sh": create,
        },
        notes=(f"It starts the jobs of `esker export {runner}`: make those first.",),
    )


def _first(name: str) -> str:
    return f"Begin {name}"


def _states(
    account: Account, runner: Runner, application: str | None, name: str, after: str | None
) -> dict[str, Any]:
    result = f"{account.results.prefix}{{}}/{name}-{{}}.json"
    key = f"States.Format('{result}', $$.Execution.Name, $.attempt)"
    done = "Done" if after is None else _first(after)
    again = f"Count {name}"
    return {
        _first(name): {"Type": "Pass", "Result": 1, "ResultPath": "$.attempt", "Next": f"Run {name}"},
        f"Run {name}": {
            "Type": "Task",
            **_task(account, runner, application, name, result),
            "ResultPath": None,
            "Retry": [
                {"ErrorEquals": _BUSY[runner], "IntervalSeconds": 60, "MaxAttempts": 5, "BackoffRate": 2.0}
            ],
            "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": None, "Next": f"Ask {name}"}],
            "Next": done,
        },
        f"Ask {name}": {
            "Type": "Task",
            "Comment": "The platform says that a job failed; why, the job has written down.",
            "Resource": f"arn:{account.partition}:states:::aws-sdk:s3:getObject",
            "Parameters": {"Bucket": account.home.bucket, "Key.$": key},
            "ResultSelector": {"told.$": "States.StringToJson($.Body)"},
            "ResultPath": "$.ended",
            "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": None, "Next": again}],
            "Next": f"Judge {name}",
        },
        f"Judge {name}": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.ended.told.exit_status", "NumericEquals": 4, "Next": again},
                *(
                    {"Variable": "$.ended.told.exit_status", "NumericEquals": status, "Next": end}
                    for status, end in _BY_STATUS.items()
                ),
            ],
            "Default": "Failed",
        },
        again: {
            "Type": "Pass",
            "Parameters": {"next.$": "States.MathAdd($.attempt, 1)"},
            "ResultPath": "$.counted",
            "Next": f"Keep {name}",
        },
        f"Keep {name}": {
            "Type": "Pass",
            "InputPath": "$.counted.next",
            "ResultPath": "$.attempt",
            "Next": f"Again {name}",
        },
        f"Again {name}": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.attempt", "NumericGreaterThan": _TRIES, "Next": "Failed"}],
            "Default": f"Wait for {name}",
        },
        f"Wait for {name}": {"Type": "Wait", "Seconds": _PAUSE_SECONDS, "Next": f"Run {name}"},
    }


def _task(
    account: Account, runner: Runner, application: str | None, name: str, result: str
) -> dict[str, Any]:
    place = f"States.Format('s3://{account.home.bucket}/{result}', $$.Execution.Name, $.attempt)"
    if runner == "glue":
        return {
            "Resource": f"arn:{account.partition}:states:::glue:startJobRun.sync",
            "Parameters": {
                "JobName": account.job.name,
                "Arguments": {"--esker-pipelines": name, "--esker-result.$": place},
            },
        }
    arguments = account.arguments() | {"--esker-pipelines": name}
    fixed = ", ".join(f"'{text}'" for pair in arguments.items() for text in pair)
    return {
        "Resource": f"arn:{account.partition}:states:::emr-serverless:startJobRun.sync",
        "Parameters": {
            "ApplicationId": application,
            "ExecutionRoleArn": account.role,
            "Name": account.job.name,
            "JobDriver": {
                "SparkSubmit": {
                    "EntryPoint": account.in_home("run.py"),
                    "EntryPointArguments.$": f"States.Array({fixed}, '--esker-result', {place})",
                    "SparkSubmitParameters": emr.submit_parameters(account),
                }
            },
        },
    }


def _policy(account: Account, runner: Runner, application: str | None) -> dict[str, Any]:
    """Return the state machine's rights: start and watch this job, and read what it wrote down."""
    results: dict[str, Any] = {
        "Sid": "Results",
        "Effect": "Allow",
        "Action": ["s3:GetObject"],
        "Resource": [f"arn:{account.partition}:s3:::{account.results.bucket}/{account.results.prefix}*"],
    }
    if runner == "glue":
        jobs: list[dict[str, Any]] = [
            {
                "Sid": "Jobs",
                "Effect": "Allow",
                "Action": ["glue:StartJobRun", "glue:GetJobRun", "glue:GetJobRuns", "glue:BatchStopJobRun"],
                "Resource": [account.arn("glue", f"job/{account.job.name}")],
            }
        ]
    else:
        place = f"/applications/{application}"
        jobs = [
            {
                "Sid": "Start",
                "Effect": "Allow",
                "Action": ["emr-serverless:StartJobRun"],
                "Resource": [account.arn("emr-serverless", place)],
            },
            {
                "Sid": "Jobs",
                "Effect": "Allow",
                "Action": ["emr-serverless:GetJobRun", "emr-serverless:CancelJobRun"],
                "Resource": [account.arn("emr-serverless", f"{place}/jobruns/*")],
            },
            {
                "Sid": "Role",
                "Effect": "Allow",
                "Action": ["iam:PassRole"],
                "Resource": [account.role],
                "Condition": {"StringLike": {"iam:PassedToService": "emr-serverless.amazonaws.com"}},
            },
            {
                # Step Functions hears of the end of a job through a rule of its own.
                "Sid": "Events",
                "Effect": "Allow",
                "Action": ["events:PutTargets", "events:PutRule", "events:DescribeRule"],
                "Resource": [account.arn("events", "rule/StepFunctionsGetEventsForEMRServerlessJobRule")],
            },
        ]
    return {"Version": "2012-10-17", "Statement": [*jobs, results]}
