"""Send exported files to AWS, or what stands for it, and print what is there afterwards.

Run by the Python of moto's environment, which has Amazon's client.
"""

import json
import sys
from pathlib import Path
from typing import Any

import boto3

ADDRESS, FOLDER = sys.argv[1], Path(sys.argv[2])


def read(*names: str) -> Any:
    return json.loads(FOLDER.joinpath(*names).read_text())


def client(service: str) -> Any:
    return boto3.client(service, endpoint_url=ADDRESS, region_name="eu-west-1")


glue, iam, s3 = client("glue"), client("iam"), client("s3")
for path in sorted(FOLDER.glob("glue/database-*.json")):
    glue.create_database(**json.loads(path.read_text()))
for folder in sorted(FOLDER.iterdir()):
    if not (folder / "policy.json").exists():
        continue
    role = folder.name.replace(" ", "-")
    iam.create_role(RoleName=role, AssumeRolePolicyDocument=(folder / "trust.json").read_text())
    # As a policy of its own, because that is what the grammar is checked for.
    iam.create_policy(PolicyName=role, PolicyDocument=(folder / "policy.json").read_text())
    iam.put_role_policy(
        RoleName=role, PolicyName="esker", PolicyDocument=(folder / "policy.json").read_text()
    )
job = read("glue", "job.json")
glue.create_job(**job)
s3.create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
s3.put_bucket_lifecycle_configuration(
    Bucket="lake", LifecycleConfiguration=read("glue", "lifecycle-lake.json")
)
serverless = client("emr-serverless")
application = serverless.create_application(**read("emr", "application.json"))["applicationId"]
started = serverless.start_job_run(**{**read("emr", "job-run.json"), "applicationId": application})
run = serverless.get_job_run(applicationId=application, jobRunId=started["jobRunId"])["jobRun"]
emr = client("emr")
cluster = emr.run_job_flow(
    Name="esker",
    ReleaseLabel="emr-7.10.0",
    Instances={"MasterInstanceType": "m5.xlarge", "InstanceCount": 1, "KeepJobFlowAliveWhenNoSteps": True},
    JobFlowRole="EMR_EC2",
    ServiceRole="EMR",
)["JobFlowId"]
emr.add_job_flow_steps(JobFlowId=cluster, Steps=read("emr", "step.json"))
states = client("stepfunctions")
machines = []
for kind in ("stepfunctions", "stepfunctions of emr"):
    request = read(kind, "create-state-machine.json")
    made = states.create_state_machine(**request)["stateMachineArn"]
    machines.append(states.describe_state_machine(stateMachineArn=made)["name"])
    states.delete_state_machine(stateMachineArn=made)
kept = glue.get_job(JobName=job["Name"])["Job"]
print(
    json.dumps(
        {
            "job": {key: kept[key] for key in job if key in kept},
            "databases": sorted(each["Name"] for each in glue.get_databases()["DatabaseList"]),
            "rules": [rule["ID"] for rule in s3.get_bucket_lifecycle_configuration(Bucket="lake")["Rules"]],
            "run": run["jobDriver"],
            "step": [each["Name"] for each in emr.list_steps(ClusterId=cluster)["Steps"]],
            "machines": machines,
        }
    )
)
