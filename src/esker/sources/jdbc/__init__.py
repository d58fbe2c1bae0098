"""Tables and queries of databases."""
