"""One set of promises, held by every catalog and store that can be started here."""
