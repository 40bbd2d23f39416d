"""From one run to one result, for both the command and the tab: kept until the run changes.

run_result      what is kept of a run: its short facts, and its entry in the document
result_store    results on disk, and the charts that the tab draws
worker_process  a process for the work, which may crash or hang without harming others
forked_process  a process that begins as a copy of this one, for many of these
"""
