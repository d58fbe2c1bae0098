"""Data contracts: Open Data Contract Standard files, read into columns, layout and rules."""

from esker.project.contract.model import Contract
from esker.project.contract.read import UnreadableContract, read_contract

__all__ = ["Contract", "UnreadableContract", "read_contract"]
