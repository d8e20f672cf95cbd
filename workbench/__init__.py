"""Floor 4: the command line, benchmarks and reports."""
