"""Programs that read what Esker writes, each opened with what `esker export` says, and seen to agree."""
