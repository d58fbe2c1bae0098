"""Where Spark's own messages go: a file per process, never the user's terminal."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from esker.errors import LogNotWritable

_KEPT = 20
_LOG4J = """status = error
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.append = true
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yy/MM/dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""


def new_log(folder: Path) -> Path:
    """Return the path of this process's Spark log, and remove the oldest ones, or raise LogNotWritable."""
    log = folder / f"spark-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}.log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in sorted(folder.glob("spark-*.log"))[: -_KEPT + 1]:
            old.unlink(missing_ok=True)
            old.with_suffix(".properties").unlink(missing_ok=True)
        log.touch()  # whoever is sent here by an error finds a file, even if Java never wrote a word
    except OSError as error:
        raise LogNotWritable(str(folder), error.strerror or str(error)) from error
    return log


def log4j_settings(log: Path) -> Path:
    """Write the log4j file that sends Spark's messages to a log, and return its path."""
    path = log.with_suffix(".properties")
    path.write_text(_LOG4J.format(file=log))
    return path
