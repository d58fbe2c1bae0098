"""Deliver from this process alone. PyIceberg opens catalogs, and commits tags and dead letters."""
