"""Pipelines for `spark-submit` on any cluster, with the driver where it is called (client mode)."""

from __future__ import annotations

import json
import shlex

import esker
from esker.engine.session import COMPILE_ALL
from esker.pipeline.export.bundle import Bundle
from esker.pipeline.export.platform import RUN, Job

_SCRIPT = """#!/usr/bin/env bash
# Runs {pipelines} of project "{project}" with spark-submit. Needs Spark {minor} and Python 3.11 or later.
#   SPARK_SUBMIT   the program. Default: spark-submit of PATH
#   SPARK_MASTER   where to run. Default: as in esker.yml
#   ESKER_PROJECT  the project's folder. Default: where it was exported from
#   ESKER_PYTHON   a Python with Esker. Default: one that is made here, from requirements.txt and ESKER_WHEEL
{variables}set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder={folder}
master={master}
if [ -z "${{ESKER_PYTHON:-}}" ]; then
  ESKER_PYTHON=$here/.python/bin/python
  if [ ! -e "$here/.python/.ready" ]; then
    python3 -m venv "$here/.python"
    "$ESKER_PYTHON" -m pip install --quiet --no-deps -r "$here/requirements.txt"
    "$ESKER_PYTHON" -m pip install --quiet --no-deps "${{ESKER_WHEEL:-{esker}}}"
    touch "$here/.python/.ready"
  fi
fi
# Of the executors: any Python of the same version.
export PYSPARK_PYTHON=${{PYSPARK_PYTHON:-$ESKER_PYTHON}} PYSPARK_DRIVER_PYTHON=$ESKER_PYTHON
spark=${{SPARK_SUBMIT:-spark-submit}}
if ! "$ESKER_PYTHON" -c 'import pyspark' 2>/dev/null; then
  # That of the cluster's own Spark: packages are installed without PySpark.
  home=${{SPARK_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v "$spark")")")")}}
  export PYTHONPATH=$home/python:$(echo "$home"/python/lib/py4j-*.zip)${{PYTHONPATH:+:$PYTHONPATH}}
fi
jars=$("$ESKER_PYTHON" -m esker.cli.fetch --spark {minor} --to "$here/jars" {names})
exec "$spark" \\
  --master "${{SPARK_MASTER:-$master}}" --deploy-mode client --name {name} \\
  --jars "$jars" --driver-class-path "${{jars//,/:}}" \\
{settings}{memory}  "$here/run.py" --esker-project "${{ESKER_PROJECT:-$folder}}" {arguments} "$@"
"""


def export(job: Job) -> Bundle:
    """Return script, settings and entry point."""
    settings = job.settings
    for side in ("driver", "executor"):
        key = f"spark.{side}.extraJavaOptions"
        own = settings.get(key)
        settings[key] = " ".join(filter(None, ["-Duser.timezone=UTC", COMPILE_ALL, own]))
    arguments = {key: value for key, value in job.arguments("").items() if key != "--esker-project"}
    memory = job.project.spark.driver_memory
    variables = job.variables
    script = _SCRIPT.format(
        pipelines=", ".join(job.pipelines),
        project=job.project.project,
        minor=job.minor,
        master=shlex.quote(job.project.spark.master),
        folder=shlex.quote(str(job.project.folder.resolve())),
        esker=f"esker=={esker.__version__}",
        names=" ".join(jar.name for jar in job.jars),
        name=shlex.quote(job.name),
        # Not as a file of properties: that would stand in the place of the cluster's own.
        settings="".join(f"  --conf {shlex.quote(f'{key}={value}')} \\\n" for key, value in settings.items()),
        memory=f"  --driver-memory {memory} \\\n" if memory else "",
        arguments=" ".join(shlex.quote(text) for pair in arguments.items() for text in pair),
        variables=f"# The project also reads: {', '.join(variables)} (or .env in its folder)\n"
        if variables
        else "",
    )
    return Bundle(
        {
            "submit.sh": script,
            "run.py": RUN,
            "jars.json": json.dumps(job.lock(), indent=2) + "\n",
            "requirements.txt": job.requirements(),
        },
        variables,
    )
