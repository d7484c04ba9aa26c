"""The laboratory: see bench/lab and bench/README.md."""
