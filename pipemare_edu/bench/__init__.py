"""`python -m pipemare_edu bench engine | pipeline | startup | gpu`: what things cost.

Ratios of times, measured alternately in one run; never a test.
"""
