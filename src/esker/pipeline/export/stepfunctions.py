"""State machines for AWS Step Functions: pipelines in order, then deliveries; and one for each reindex.

Whatever a state machine starts may always be repeated, because a batch and its position are published
together, and messages may come again. What is worth it, each error says itself (its outcome): the work
writes that down with its exit status, and the state machine reads it. So it repeats what could not reach a
server and what does not know whether it landed. A broken contract, a held batch and a second writer want a
person. Small work that finds out that it needs Spark is done by the runner of pipelines instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from esker.deliver.in_process.only_spark import why_for_changes, why_for_rows
from esker.pipeline.deliver import subscribed
from esker.pipeline.export import emr
from esker.pipeline.export.aws import Account, as_json
from esker.pipeline.export.bundle import Bundle
from esker.pipeline.export.glue import MAKING
from esker.pipeline.export.options import Options, Runner, TaskRunner
from esker.pipeline.export.task_image import TaskImage

_TRIES = 3
_PAUSE_SECONDS = 300
_LAMBDA = [
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
]
_BUSY = {
    "glue": [
        "Glue.ConcurrentRunsExceededException",
        "Glue.ThrottlingException",
        "Glue.OperationTimeoutException",
    ],
    "emr": ["EmrServerless.ThrottlingException", "EmrServerless.InternalServerException"],
    "lambda": _LAMBDA,
    "ecs": ["ECS.AmazonECSException", "ECS.ThrottlingException", "ECS.ServerException"],
}
_ENDS = {
    "Held": "A batch waits for a decision: esker approve or esker reject.",
    "Fenced": "Another writer took over, or the table is not as it was left. The log of the job says which.",
    "Contract broken": "Rows break the contract: esker quarantine list.",
    "Failed": "The log of the job says why.",
}
_OF_A_TASK = " of a task"
"""Names of states are unique in a machine, inside its map, too."""
_BY_STATUS = {3: "Contract broken", 5: "Fenced", 6: "Held"}


@dataclass(frozen=True)
class _Work:
    """A piece of work of a state machine."""

    label: str
    """How its states are called."""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """What the entry point is told."""
    is_task: bool = False
    """One of many, whose number is in `$.task`."""
    is_small: bool = False
    """It needs no Spark."""

    @classmethod
    def run(cls, pipeline: str) -> _Work:
        return cls(pipeline, {"--esker-pipelines": pipeline})


def export(account: Account, options: Options) -> Bundle:
    """Return state machines, their roles, an image for small work, and a schedule. Raises CannotExport."""
    return _Export(account, options).bundle()


class _Export:
    def __init__(self, account: Account, options: Options) -> None:
        self._account, self._options, job = account, options, account.job
        if options.runner == "emr" and options.application is None:
            raise job.refused("the application of EMR Serverless is not known; write --application")
        self._consumers = job.consumers
        runner = options.runner if options.runner in ("lambda", "ecs") else None
        tasks: TaskRunner = "ecs" if (runner or options.tasks) == "ecs" else "lambda"
        self._image: TaskImage | None = None
        if runner is not None or self._consumers:
            if tasks == "ecs" and not options.subnets:
                raise job.refused("a task of ECS runs in subnets of yours; write --subnet")
            self._image = TaskImage(
                account, tasks, self._consumers, runner is not None, options.subnets, options.cluster
            )

    def bundle(self) -> Bundle:
        account, job = self._account, self._account.job
        work = [_Work.run(name) for name in job.pipelines]
        work += [
            _Work(
                f"delivery to {name}",
                {"--esker-do": "deliver", "--esker-consumer": name},
                is_small=why_for_changes(job.project, subscribed(job.project, name)) is None,
            )
            for name in self._consumers
        ]
        files: dict[str, str | bytes] = {}
        creating: list[str] = []
        role = f"{account.role}-states"
        machines = {"": self._machine(f"Esker: {', '.join(job.pipelines)}", work)}
        if self._is_state_shared:
            machines |= {f"-reindex-{name}": self._reindex(name) for name in self._consumers}
        for ending, machine in machines.items():
            stem = ending.removeprefix("-")
            own = "state-machine.json" if not stem else f"{stem}.json"
            files[own] = as_json(machine)
            request = f"create-{own}"
            files[request] = as_json(
                {
                    "name": f"{job.name}{ending}",
                    "definition": as_json(machine),
                    "roleArn": role,
                    "type": "STANDARD",
                }
            )
            creating.append(f"make aws stepfunctions create-state-machine --cli-input-json file://{request}")
        files["policy.json"] = as_json(self._policy())
        files["trust.json"] = as_json(account.trust("states.amazonaws.com"))
        making = [_role(f"{job.name}-states", "trust.json", "policy.json")]
        notes = []
        if self._options.runner in ("glue", "emr"):
            notes.append(f"It starts the jobs of `esker export {self._options.runner}`: make those first.")
        if self._consumers and not self._is_state_shared:
            notes.append(
                "No state machine for a reindex is written: its tasks look for their plan in the state "
                "database, and that of this project is a file. Write state: {url: postgresql://…}."
            )
        if self._image is not None:
            files |= self._image.files()
            request = "create-function.json" if self._image.runner == "lambda" else "task-definition.json"
            files[request] = as_json(self._image.request())
            files["task-policy.json"] = as_json(self._image.policy())
            files["task-trust.json"] = as_json(account.trust(self._image.service))
            making.append(_role(self._image.name, "task-trust.json", "task-policy.json"))
            verb = (
                "lambda create-function" if self._image.runner == "lambda" else "ecs register-task-definition"
            )
            making.append(f"make aws {verb} --cli-input-json file://{request}")
            notes.append(
                "Small work runs in an image: build.sh makes it and brings it to AWS, before create.sh."
            )
        expression = self._options.schedule or _every(account)
        if expression is not None:
            files["create-schedule.json"] = as_json(self._schedule(expression))
            files["schedule-policy.json"] = as_json(
                _policy_of("Start", ["states:StartExecution"], [self._arn("")])
            )
            files["schedule-trust.json"] = as_json(account.trust("scheduler.amazonaws.com"))
            creating.insert(0, _role(f"{job.name}-schedule", "schedule-trust.json", "schedule-policy.json"))
            creating.append("make aws scheduler create-schedule --cli-input-json file://create-schedule.json")
        else:
            notes.append("Nothing starts it: no pipeline says every:, and --schedule was not written.")
        files["create.sh"] = "\n".join(
            (
                "#!/usr/bin/env bash",
                "# Makes the state machines, their roles, what does small work, and the schedule.",
                f"{MAKING}{making[0]}",
                *making[1:],
                *creating,
                "",
            )
        )
        return Bundle(files, job.variables if self._image is not None else (), tuple(notes))

    @property
    def _is_state_shared(self) -> bool:
        """The state database is a server's: a file would be gone with the job that wrote it."""
        return self._account.job.project.state.url.startswith("postgresql")

    def _arn(self, ending: str) -> str:
        return self._account.arn("states", f"stateMachine:{self._account.job.name}{ending}")

    def _machine(self, comment: str, work: Sequence[_Work]) -> dict[str, Any]:
        states: dict[str, Any] = {}
        for each, after in zip(work, [*work[1:], None], strict=True):
            states |= self._states(each, "Done" if after is None else _first(after))
        return {"Comment": comment, "StartAt": _first(work[0]), "States": states | _ends()}

    def _reindex(self, consumer: str) -> dict[str, Any]:
        """Return the machine that sends all rows: it begins, does the tasks side by side, and ends it."""
        project = self._account.job.project
        declared = project.consumer(consumer)
        told = {"--esker-consumer": consumer}
        begin = _Work("reindex", {"--esker-do": "reindex-begin", **told})
        task = _Work(
            "task",
            {"--esker-do": "reindex-task", **told},
            is_task=True,
            is_small=why_for_rows(project, subscribed(project, consumer)) is None,
        )
        end = _Work("end of the reindex", {"--esker-do": "reindex-end", **told})
        listed = "Read tasks"
        states = self._states(begin, listed)
        states[listed] = self._read(begin, "$.listed", "Failed") | {"Next": "All tasks"}
        # Without a key, rows of one id may be in several tasks, and have to come in order.
        is_keyed = project.pipeline(declared.source).is_keyed
        # Nor can Glue do several: its job runs once at a time.
        is_parallel = is_keyed and self._runner_of(task) != "glue"
        states["All tasks"] = {
            "Type": "Map",
            "ItemsPath": "$.listed.told.tasks",
            "ItemSelector": {"task.$": "$$.Map.Item.Value"},
            "MaxConcurrency": declared.reindex.parallel if is_parallel else 1,
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "INLINE"},
                "StartAt": _first(task),
                "States": self._states(task, f"Done{_OF_A_TASK}") | _ends(_OF_A_TASK),
            },
            "ResultPath": None,
            "Next": _first(end),
        }
        states |= self._states(end, "Done")
        return {
            "Comment": f"Esker: all rows to {consumer}",
            "StartAt": _first(begin),
            "States": states | _ends(),
        }

    def _states(self, work: _Work, done: str) -> dict[str, Any]:
        """Return the states that do a piece of work, and do it again where that is worth it."""
        if self._runner_of(work) == self._options.runner:
            return self._states_of(work, done)
        # What tables hold may need Spark, too: the project file does not tell it.
        large = replace(work, label=f"{work.label} with Spark", is_small=False)
        if not work.is_task:  # a task has as many rows as one shall have
            work = replace(work, arguments={**work.arguments, "--esker-large": "elsewhere"})
        return self._states_of(work, done, _first(large)) | self._states_of(large, done)

    def _states_of(self, work: _Work, done: str, with_spark: str | None = None) -> dict[str, Any]:
        name, again = work.label, f"Count {work.label}"
        end = _OF_A_TASK if work.is_task else ""
        return {
            _first(work): {"Type": "Pass", "Result": 1, "ResultPath": "$.attempt", "Next": f"Run {name}"},
            f"Run {name}": {
                "Type": "Task",
                **self._task(work),
                "ResultPath": None,
                "Retry": [
                    {
                        "ErrorEquals": _BUSY[self._runner_of(work)],
                        "IntervalSeconds": 60,
                        "MaxAttempts": 5,
                        "BackoffRate": 2.0,
                    }
                ],
                "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": None, "Next": f"Ask {name}"}],
                "Next": done,
            },
            f"Ask {name}": self._read(work, "$.ended", again) | {"Next": f"Judge {name}"},
            f"Judge {name}": {
                "Type": "Choice",
                "Choices": [
                    _if_told("retry", again),
                    *([_if_told("needs_spark", with_spark)] if with_spark is not None else []),
                    *(
                        {
                            "Variable": "$.ended.told.exit_status",
                            "NumericEquals": status,
                            "Next": f"{name_of_end}{end}",
                        }
                        for status, name_of_end in _BY_STATUS.items()
                    ),
                ],
                "Default": f"Failed{end}",
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
                "Choices": [{"Variable": "$.attempt", "NumericGreaterThan": _TRIES, "Next": f"Failed{end}"}],
                "Default": f"Wait for {name}",
            },
            f"Wait for {name}": {"Type": "Wait", "Seconds": _PAUSE_SECONDS, "Next": f"Run {name}"},
        }

    def _read(self, work: _Work, into: str, otherwise: str) -> dict[str, Any]:
        """Return the state that reads what a piece of work has written down, without what comes next."""
        account = self._account
        return {
            "Type": "Task",
            "Comment": "The platform says no more than that it ended; how, the work has written down.",
            "Resource": f"arn:{account.partition}:states:::aws-sdk:s3:getObject",
            "Parameters": {"Bucket": account.home.bucket, "Key.$": self._place(work, account.results.prefix)},
            "ResultSelector": {"told.$": "States.StringToJson($.Body)"},
            "ResultPath": into,
            "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": None, "Next": otherwise}],
        }

    def _place(self, work: _Work, before: str) -> str:
        """Return the expression for where a piece of work writes down how it ended."""
        slug = work.label.replace(" ", "-")
        if work.is_task:
            return (
                f"States.Format('{before}{{}}/{slug}-{{}}-{{}}.json', $$.Execution.Name, $.task, $.attempt)"
            )
        return f"States.Format('{before}{{}}/{slug}-{{}}.json', $$.Execution.Name, $.attempt)"

    def _runner_of(self, work: _Work) -> Runner:
        if work.is_small and self._image is not None:
            return self._image.runner
        return self._options.runner

    def _task(self, work: _Work) -> dict[str, Any]:
        account, runner = self._account, self._runner_of(work)
        place = self._place(work, f"s3://{account.home.bucket}/{account.results.prefix}")
        if runner == "glue":
            told = {**work.arguments, **({"--esker-task.$": _NUMBER} if work.is_task else {})}
            return {
                "Resource": f"arn:{account.partition}:states:::glue:startJobRun.sync",
                "Parameters": {
                    "JobName": account.job.name,
                    "Arguments": {**told, "--esker-result.$": place},
                },
            }
        # A piece of work names its pipeline, or needs none.
        fixed = {key: value for key, value in account.arguments().items() if key != "--esker-pipelines"}
        texts = [f"'{text}'" for pair in (fixed | dict(work.arguments)).items() for text in pair]
        number = ["'--esker-task'", _NUMBER] if work.is_task else []
        arguments = f"States.Array({', '.join([*texts, *number])}, '--esker-result', {place})"
        if runner != "emr":
            assert self._image is not None
            return self._image.state(arguments)
        return {
            "Resource": f"arn:{account.partition}:states:::emr-serverless:startJobRun.sync",
            "Parameters": {
                "ApplicationId": self._options.application,
                "ExecutionRoleArn": account.role,
                "Name": account.job.name,
                "JobDriver": {
                    "SparkSubmit": {
                        "EntryPoint": account.in_home("run.py"),
                        "EntryPointArguments.$": arguments,
                        "SparkSubmitParameters": emr.submit_parameters(account),
                    }
                },
            },
        }

    def _schedule(self, expression: str) -> dict[str, Any]:
        return {
            "Name": self._account.job.name,
            "ScheduleExpression": expression,
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "Target": {"Arn": self._arn(""), "RoleArn": f"{self._account.role}-schedule", "Input": "{}"},
        }

    def _policy(self) -> dict[str, Any]:
        """Return the state machines' rights: start and watch this work, and read what it wrote down."""
        account, options = self._account, self._options
        results: dict[str, Any] = {
            "Sid": "Results",
            "Effect": "Allow",
            "Action": ["s3:GetObject"],
            "Resource": [f"arn:{account.partition}:s3:::{account.results.bucket}/{account.results.prefix}*"],
        }
        jobs: list[dict[str, Any]] = self._image.rights_to_start() if self._image is not None else []
        if options.runner == "glue":
            jobs += [
                {
                    "Sid": "Jobs",
                    "Effect": "Allow",
                    "Action": [
                        "glue:StartJobRun",
                        "glue:GetJobRun",
                        "glue:GetJobRuns",
                        "glue:BatchStopJobRun",
                    ],
                    "Resource": [account.arn("glue", f"job/{account.job.name}")],
                }
            ]
        elif options.runner == "emr":
            place = f"/applications/{options.application}"
            jobs += [
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


_NUMBER = "States.Format('{}', $.task)"


def _first(work: _Work) -> str:
    return f"Begin {work.label}"


def _ends(of: str = "") -> dict[str, Any]:
    ends: dict[str, Any] = {f"Done{of}": {"Type": "Succeed"}}
    for error, cause in _ENDS.items():
        ends[f"{error}{of}"] = {"Type": "Fail", "Error": error.replace(" ", ""), "Cause": cause}
    return ends


def _if_told(fact: str, then: str) -> dict[str, Any]:
    """Return the choice for work that has written down that something is so."""
    place = f"$.ended.told.{fact}"
    asked = [{"Variable": place, "IsPresent": True}, {"Variable": place, "BooleanEquals": True}]
    return {"And": asked, "Next": then}


def _every(account: Account) -> str | None:
    """Return the shortest `every` of the pipelines, as EventBridge writes it."""
    project = account.job.project
    known = [project.pipeline(name).every for name in account.job.pipelines]
    found = [every for every in known if every is not None]
    if not found:
        return None
    minutes = max(1, min(found) // timedelta(minutes=1))
    return f"rate({minutes} minute{'' if minutes == 1 else 's'})"


def _policy_of(sid: str, actions: Sequence[str], resources: Sequence[str]) -> dict[str, Any]:
    statement = {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
    return {"Version": "2012-10-17", "Statement": [statement]}


def _role(name: str, trust: str, policy: str) -> str:
    """Return the commands that make a role."""
    return (
        f"make aws iam create-role --role-name {name} --assume-role-policy-document file://{trust}\n"
        f"aws iam put-role-policy --role-name {name} --policy-name esker --policy-document file://{policy}"
    )
