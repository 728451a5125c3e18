"""Studies: questions put to the real trainer, with the numbers that came out."""
