"""The laboratory: see bench/lab and docs/benchmarks.md."""
