"""`python -m pipemare_edu bench engine | pipeline | startup | imports | gpu`: what things cost.

Ratios of times, measured alternately in one run; never a test.
"""
