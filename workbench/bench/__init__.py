"""Benchmarks: suites of cases, run interleaved, kept as JSONL rows, drawn as tables and pictures."""
