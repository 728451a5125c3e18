"""A pipeline on paper: values in, values out.  Nothing here imports torch."""
