"""Commands that end before their work does."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from esker.errors.root import EskerError, Outcome


class Interrupted(EskerError):
    """The user stopped the run (Ctrl-C). Nothing was half loaded."""

    code = "ESK-RUN-001"
    exit_status = 130

    def __init__(self) -> None:
        super().__init__(
            "interrupted",
            reason="Every batch that was published is whole; the others left no trace in the table.",
            remedy="The next run goes on where the last published batch ended.",
        )


class Unexpected(EskerError):
    """Something that nobody thought of: a mistake in Esker. A report for its makers is written."""

    code = "ESK-RUN-003"

    def __init__(self, what: str, report: str) -> None:
        super().__init__(
            f"unexpected {what}",
            reason="This is a mistake in Esker, not in your project.",
            remedy=f"Report it with {report}",
        )

    @classmethod
    def reported(cls, error: BaseException, mask: Callable[[str], str]) -> Unexpected:
        """Return the error after its traceback has been written to a file, secrets masked."""
        report = Path(tempfile.gettempdir()) / f"esker-{uuid4().hex[:12]}.log"
        report.write_text(mask("".join(traceback.format_exception(error))), encoding="utf-8")
        return cls(mask(f"{type(error).__name__}: {error}"), str(report))


class ProcessDied(EskerError):
    """A run's process ended without saying how: it was killed, or the machine stopped."""

    code = "ESK-RUN-002"
    outcome = Outcome.RETRY

    def __init__(self) -> None:
        super().__init__(
            "the process ended without a word",
            reason="It was killed, or the machine stopped.",
            remedy="Nothing is lost or doubled: the next run reads the ledger and goes on.",
        )
