"""Many runs: found, read where they have changed, kept, summed up and compared.

passes      one pass over all runs; it needs the rest of this package
store       results, each kept until its run changes
work        one run to one result, as plain bytes; the same on every machine
apart       a process of its own for that work, with a deadline
engines     where the work is done: here, in processes, on a Dask cluster
selection   which runs: by name, by time, by shard
judge       what is said about the whole: fleet (sums), limits, baseline (what is worse)
render      the report, from view (tables) and the views of one run
tables      JSON lines and Parquet
"""
