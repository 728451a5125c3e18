"""python -m pipemare_edu reproduce: the paper's comparison on tasks of this machine's size.

presets   which tasks and seeds             reported  the paper's own numbers
store     finished runs, a file each        study     runs what the store lacks
summary   records to rows of numbers        section   a task in the report
report    the whole, block by block         render    blocks to Markdown and HTML
command   the command line
"""
