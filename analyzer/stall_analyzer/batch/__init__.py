"""Many runs: found, read if they have changed, stored, summarized and compared.

batch                     all runs of one call; it needs the rest of this package, and `results`
engines, parallel         where the work is done: here; in processes or on a Dask cluster
selection                 which runs: by name, by time, by shard
judge                     what is said about the whole: sums, limits, baseline (what is worse)
text_output, json_output  the report, from view (tables) and the views of one run
tables                    JSON lines and Parquet
"""
