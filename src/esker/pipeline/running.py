"""The part of the Python interface that starts Spark when there is something to do, and not before.

Each method loads what it needs: a look at a table waits for no state database, a run for no reader of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

from esker.events import Listener, silent
from esker.pipeline.reading import ReadingProject

if TYPE_CHECKING:
    from esker.pipeline.figures import Figure
    from esker.pipeline.planned import PipelinePlan
    from esker.pipeline.result import RunReport, RunResult
    from esker.pipeline.show import TableReport
    from esker.pipeline.waiting import Waiting


class RunningProject(ReadingProject):
    """A project whose pipelines can be run and planned, and whose tables can be shown.

    Spark starts where there is something to do, or something that only Java can tell.
    """

    def run(self, pipeline: str, listen: Listener = silent) -> RunResult:
        """Load what is new in a pipeline's source. Raises the error of a run that failed."""
        from esker.pipeline.new import run_new

        self._find(pipeline)
        result = run_new(self.project, self._start, self.state, pipeline, listen, lambda: self._is_started)
        if result.error is not None:
            raise result.error
        return result

    def run_all(
        self, pipelines: Sequence[str] = (), *, only_due: bool = False, listen: Listener = silent
    ) -> RunReport:
        """Run pipelines, or all; errors are in the report. With `only_due`, those that are due.

        One that reads the table of another, or whose contract refers to it, runs behind it. A family runs a
        pipeline for each table that its database has now.
        """
        from esker.pipeline.new import run_pipelines
        from esker.pipeline.order import in_order
        from esker.pipeline.result import RunReport

        wanted = self._chosen(pipelines)
        if only_due:
            self._recall_all()
            wanted = self._due(wanted)
        names, results = self._gathered(wanted)
        names = in_order(self.project, self._due(names) if only_due else names)
        done = run_pipelines(self.project, self._start, self.state, names, listen, lambda: self._is_started)
        return RunReport([*results, *done.pipelines])

    def show(self, table: str, *, where: str | None = None, limit: int = 10) -> TableReport:
        """Return a report on a table. Spark starts for a filter, and for tables that only Java reads."""
        from esker.engine.iceberg.table_id import TableId
        from esker.pipeline.show import show_table

        wanted = TableId(*self._named(table))
        if not self._is_started and where is None:
            from esker.pipeline.tables_here import TablesHere
            from esker.reading.documents import Documents

            with suppress(Exception):  # Spark meets it too, and has the words for it
                return show_table(TablesHere(Documents(self.project)), wanted, limit=limit)
        from esker.pipeline.tables_by_spark import TablesBySpark

        return show_table(TablesBySpark(self._start()), wanted, where=where, limit=limit)

    def plan(self, pipelines: Sequence[str] = ()) -> list[PipelinePlan]:
        """Return what runs would do, and how contract, table and source differ. Nothing is changed.

        What keeps a run from beginning is the plan's error; the others are planned all the same. Spark starts
        unless there is nothing to do.
        """
        names = self._chosen(pipelines)
        found = [] if self._is_started else list(takewhile(bool, map(self._unchanged, names)))
        if names and len(found) == len(names):
            return [plan for plan in found if plan is not None]
        from esker.pipeline.planning import plan_all

        return plan_all(self.project, self._start, self.state, names)

    def quality(
        self, table: str, as_of: str | None = None, beside: str | None = None, *, held: bool = False
    ) -> list[Figure]:
        """Return what the checks of a table found last, at a point and beside another one.

        Points are changesets or times. With `held`, what they found in batches that were held. Raises
        NoQuality or UnknownPoint.
        """
        from esker.engine.iceberg.table_id import TableId

        wanted = TableId(*self._named(table))
        if not self._is_started:
            from esker.pipeline.quality_here import quality_here
            from esker.reading.documents import Documents

            with suppress(Exception):  # Spark meets it too, and has the words for it
                return quality_here(Documents(self.project), wanted, as_of, beside, held=held)
        from esker.pipeline.quality import read_quality

        return read_quality(self._start(), wanted, as_of, beside, held=held)

    def quarantined(self, pipelines: Sequence[str] = ()) -> list[Waiting]:
        """Return what waits in quarantine, by table and broken rules."""
        names = self.names(pipelines)
        if not self._is_started:
            from esker.pipeline.waiting import waiting_here
            from esker.reading.documents import Documents

            with suppress(Exception):  # Spark meets it too, and has the words for it
                return waiting_here(Documents(self.project), names)
        from esker.pipeline.quarantine import list_waiting

        return list_waiting(self._start(), names)

    def names(self, pipelines: Sequence[str] = ()) -> list[str]:
        """Return the named pipelines, or all, or raise UnknownPipeline.

        Of families these are the pipelines of tables that were found before: no database is asked.
        """
        self._recall_all()
        found: list[str] = []
        for name in self._chosen(pipelines):
            if name in self.project.families:
                found += [each for each in self.project.pipelines if each.startswith(f"{name}.")]
            else:
                self.project.pipeline(name)
                found.append(name)
        return found

    def _unchanged(self, name: str) -> PipelinePlan | None:
        """Return the plan of a pipeline with nothing to do; None where only Spark can plan it."""
        if self.project.family_of(name) is not None:
            return None
        from esker.pipeline.idle import nothing_new
        from esker.pipeline.reader_notes import reader_notes
        from esker.reading.documents import Documents

        plan = nothing_new(self.project, self.state, name)
        if plan is None:
            return None
        told = reader_notes(self.project, plan, Documents(self.project).table)
        return replace(plan, notes=(*plan.notes, *told))

    def _gathered(self, wanted: Sequence[str]) -> tuple[Sequence[str], Sequence[RunResult]]:
        """Return pipelines by name, for each family those of its tables, and what became of families."""
        if not any(self.project.family_of(name) for name in wanted):
            return wanted, ()
        from esker.pipeline.discovery import gather

        gathered = gather(self.project, self._start, self.state, wanted)
        return gathered.names, gathered.results

    def _find(self, name: str) -> None:
        """Make sure of a pipeline whose source is going to be read; a family's database is asked for it."""
        family = self.project.family_of(name)
        if family is not None and name == family.name:
            from esker.pipeline.families import recall

            recall(self.project, self.state, family)
        elif family is not None:
            from esker.pipeline.discovery import discover

            for each in discover(self.project, self._start, self.state, family).of(name).unsuited:
                raise each.error
        self.project.pipeline(name)

    def _due(self, names: Sequence[str]) -> list[str]:
        from esker.pipeline.due import due_pipelines

        due = due_pipelines(self.project, self.state, self.state.now())
        return [name for name in names if name in due]

    def _chosen(self, pipelines: Sequence[str]) -> list[str]:
        """Return what is named, or all that is declared: pipelines, families, and pipelines of these."""
        for name in pipelines:
            self.project.check_name(name)
        declared = [name for name in self.project.pipelines if self.project.family_of(name) is None]
        return list(pipelines) or [*declared, *self.project.families]
