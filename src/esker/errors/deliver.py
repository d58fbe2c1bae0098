"""Consumers, their targets, and reindexes."""

from __future__ import annotations

from esker.errors.root import EskerError, Outcome


class DeliverError(EskerError):
    """Changes could not be delivered. What was delivered stays; the next delivery goes on behind it."""

    code = "ESK-DELIVER-000"
    exit_status = 4


class TargetUnavailable(DeliverError):
    """A target does not answer, or answers with an error, also when it is asked again."""

    code = "ESK-DELIVER-001"

    def __init__(self, target: str, why: str, attempts: int) -> None:
        super().__init__(
            f"{target} does not take what it is sent",
            reason=f"{why} (tried {attempts} time{'s' if attempts > 1 else ''})",
            remedy="If the server is well, see whether address and credentials are right; then deliver "
            "again: nothing is lost.",
        )


class TargetRefused(DeliverError):
    """A target refuses all that it is sent: who sends it, how, or where to."""

    code = "ESK-DELIVER-020"
    exit_status = 1

    def __init__(
        self,
        target: str,
        why: str,
        remedy: str = "Correct the target in the project file; then deliver again: nothing is lost.",
    ) -> None:
        super().__init__(f"{target} refuses what it is sent", reason=why, remedy=remedy)


class IndexGone(TargetRefused):
    """A search index is there no more, or its alias leads nowhere: what was sent before is gone with it."""

    code = "ESK-DELIVER-048"

    def __init__(self, target: str, why: str) -> None:
        super().__init__(target, why, "Reindex, which fills a new one.")


class IndexNotSwitchable(DeliverError):
    """A search index cannot be replaced by another one, as it is no alias."""

    code = "ESK-DELIVER-021"
    exit_status = 1

    def __init__(self, index: str, why: str) -> None:
        super().__init__(
            f'"{index}" cannot be led to another index',
            reason=why,
            remedy="Give the target's index: another name, which becomes an alias, and search there. Or "
            f'delete the index "{index}", and reindex: that makes an alias of that name.',
        )


class TargetFunctionNotFound(DeliverError):
    """The function that a target names cannot be had."""

    code = "ESK-DELIVER-022"
    exit_status = 2

    def __init__(self, function: str, why: str) -> None:
        super().__init__(
            f'there is no target function "{function}"',
            reason=why,
            remedy="Name a function of the project or of an installed package: "
            "function: targets/works.py:keep",
        )


class TargetFunctionFailed(DeliverError):
    """A target function raised an error, or gave back what means nothing."""

    code = "ESK-DELIVER-023"
    exit_status = 1

    def __init__(self, function: str, why: str) -> None:
        super().__init__(
            f'target function "{function}" failed',
            reason=why,
            remedy="Correct the function, then deliver again: it gets the same messages.",
        )


class ReindexNeeded(DeliverError):
    """What a consumer has not been told yet cannot be had from the log any more, or its index is gone."""

    code = "ESK-DELIVER-040"
    exit_status = 1

    def __init__(self, consumer: str, why: str) -> None:
        super().__init__(
            f'consumer "{consumer}" cannot go on from where it was',
            reason=why,
            remedy=f"Send it all rows, and then what changes: esker reindex {consumer}",
        )


class ConsumerBusy(DeliverError):
    """A delivery or a reindex of the consumer is active."""

    code = "ESK-DELIVER-041"
    exit_status = 1
    outcome = Outcome.RETRY

    def __init__(self, consumer: str, holder: str) -> None:
        super().__init__(
            f'consumer "{consumer}" is being delivered to',
            reason=f"Another process does it: {holder}.",
            remedy="Try again when it has ended.",
        )


class TransformNotFound(DeliverError):
    """The function that makes a consumer's messages cannot be had."""

    code = "ESK-DELIVER-042"
    exit_status = 2

    def __init__(self, function: str, why: str) -> None:
        super().__init__(
            f'there is no transform "{function}"',
            reason=why,
            remedy="Name a function that is marked with @esker.transform: "
            "transform: transforms/works.py:to_work",
        )


class DeliveryRefused(DeliverError):
    """A consumer's transform or enrichment does not fit its table."""

    code = "ESK-DELIVER-043"
    exit_status = 2

    def __init__(
        self,
        consumer: str,
        why: str,
        remedy: str = "Correct id:, transform: or enrich: of the consumer; esker show TABLE lists a table's "
        "columns.",
    ) -> None:
        super().__init__(f'consumer "{consumer}" does not fit its table', reason=why, remedy=remedy)


class ReindexUnverified(DeliverError):
    """A new index does not hold what the table holds. The alias leads where it led before."""

    code = "ESK-DELIVER-044"
    exit_status = 1

    def __init__(self, consumer: str, index: str, wanted: int, found: int, told: str) -> None:
        super().__init__(
            f'index "{index}" of consumer "{consumer}" has {found} documents, and {wanted} were wanted',
            reason=f"{told} Others may have written to it.",
            remedy=f"Fill another index: esker reindex {consumer} --anew",
        )


class ReindexUnsuitable(DeliverError):
    """A reindex was asked for that cannot be done so."""

    code = "ESK-DELIVER-045"
    exit_status = 2

    def __init__(self, consumer: str, why: str, instead: str) -> None:
        super().__init__(f'consumer "{consumer}" cannot be reindexed so', reason=why, remedy=instead)


class ConsumerFenced(DeliverError):
    """Somebody else delivers to the consumer by now, or may. This delivery ends."""

    code = "ESK-DELIVER-046"
    exit_status = 5

    def __init__(self, consumer: str) -> None:
        super().__init__(
            f'somebody else delivers to consumer "{consumer}"',
            reason="This process was stopped, or did not reach the state database, for so long that its "
            "lease ran out. It sends nothing more, and its offset was not stored.",
            remedy="Nothing is lost: the next delivery goes on. Find out what stopped this one.",
        )


class TaskOutlived(ConsumerFenced):
    """A reindex has ended, or gone on, without a task that was still sending. The task ends."""

    code = "ESK-DELIVER-049"

    def __init__(self, consumer: str) -> None:
        EskerError.__init__(
            self,
            f'a task of a reindex of consumer "{consumer}" has outlived the reindex',
            reason="Somebody else did the task as well, or the reindex was given up or begun anew. Rows of "
            "its snapshot would come behind later changes by now.",
            remedy="Nothing is to be done. Let whoever starts tasks stop one before it starts it again.",
        )


class ConsumerDeclared(DeliverError):
    """A consumer that the project declares cannot be forgotten. Nothing was changed."""

    code = "ESK-DELIVER-047"
    exit_status = 2

    def __init__(self, consumer: str) -> None:
        super().__init__(
            f'consumer "{consumer}" is declared',
            reason="The next delivery would begin from its start: again.",
            remedy="Take it out of esker.yml first. To send it all rows, reindex it: "
            f"esker reindex {consumer}",
        )
