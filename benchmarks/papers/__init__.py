"""Published results and ours: the tables and figures of four papers, made again.

A published number stands in `published/` and is never computed; a number of ours is
measured, with the number of repetitions it is a mean of; what was not run is listed as not run.
"""
