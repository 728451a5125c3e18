"""The pipeline that runs: operation lists from `plan`, carried out with torch."""
