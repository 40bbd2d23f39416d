"""One run to one result, for the command and the tab alike: kept until the run changes.

run_result      what is kept of a run: its facts in short, and its entry of the document
result_store    results on disk, and the charts that the tab draws
worker_process  a process for the work, which may crash or hang without harm to others
"""
