"""Ranges of a table's changes: what can be read since a point, and one reader each in Arrow and in Spark."""
