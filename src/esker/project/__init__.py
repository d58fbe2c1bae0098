"""What users declare: strict models, read from YAML with line numbers."""

from esker.project.load import load_project
from esker.project.pipelines import Pipeline
from esker.project.project import Project

__all__ = ["Pipeline", "Project", "load_project"]
