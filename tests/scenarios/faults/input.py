"""Programs that wait for their input, as people write them, and the same programs put right."""

from __future__ import annotations

from tests.scenarios.faults import input_native as native
from tests.scenarios.faults import input_python as python
from tests.scenarios.faults.base import Fault

FAULTS = (
    Fault(
        "python_augmentation", "ST001", "input",
        python.python_augmentation, python.native_augmentation,
        "numpy_function augments pictures one by one",
    ),
    Fault(
        "python_augmentation_parallel", "ST001", "input",
        python.python_augmentation_parallel, python.native_augmentation,
        "py_function in a parallel map: the calls share the interpreter",
    ),
    Fault(
        "generator_parses_text", "ST002", "input",
        python.generator_parses_text, python.tensorflow_parses_text,
        "from_generator parses and scales lines of text, row by row",
    ),
    Fault(
        "pydataset_one_worker", "ST002", "input",
        python.remote_batches(), python.remote_batches(workers=8, max_queue_size=16),
        "a PyDataset fetches batches from a slow store with one worker",
    ),
    Fault(
        "random_map_serial", "ST003", "input", native.random_map_serial, native.random_map_parallel,
        "random ops keep tf.data from making the map parallel",
    ),
    Fault(
        "nothing_prefetched", "ST004", "input",
        python.rewrites_are_off(prefetched=False), python.rewrites_are_off(prefetched=True),
        "rewrites are off and nothing is prefetched",
    ),
    Fault(
        "shuffle_after_slow_map", "ST005", "input",
        python.shuffle_after_slow_map, python.shuffle_before_slow_map,
        "a large shuffle buffer is filled through a slow map",
    ),
    Fault(
        "cache_is_filled", "ST006", "input", python.cache_is_filled, python.cache_on_disk,
        "a cache in memory is filled in the first epoch of each start",
    ),
    Fault(
        "small_files", "ST007", "input", native.small_files, native.one_record_file,
        "one tiny file for each row",
    ),
    Fault(
        "large_pictures", "ST008", "input",
        native.jpeg_pictures(side=768), native.jpeg_pictures(side=64),
        "large JPEGs are decoded whole and then shrunk",
    ),
    Fault(
        "generator_loads_everything", "ST009", "input",
        python.data_loaded(before=False), python.data_loaded(before=True),
        "a generator loads all data before its first yield",
    ),
    Fault(
        "input_takes_cores", "ST010", "input",
        native.input_takes_cores(cached=False), native.input_takes_cores(cached=True),
        "native input computes on the cores of the step",
    ),
    Fault(
        "batch_of_two", "ST109", "host",
        native.batches_of_two(steps_per_call=1), native.batches_of_two(steps_per_call=20),
        "batches of two rows, one call for each",
    ),
    Fault(
        "gzip_records", "ST013", "input", native.packed_records("GZIP"), native.packed_records(""),
        "one thread unpacks a gzip TFRecord file",
    ),
    Fault(
        "data_set_made_each_epoch", "ST014", "input",
        native.data_set_made_each_epoch, native.data_set_made_once,
        "the iterator of a long pipeline is made anew in each epoch",
    ),
    Fault(
        "map_before_batch", "ST015", "input", native.map_before_batch, native.map_after_batch,
        "two multiplications for each row, mapped row by row",
    ),
    Fault(
        "heavy_map_each_epoch", "ST016", "input",
        native.heavy_map_each_epoch, native.heavy_map_stored,
        "a parallel map computes features that could be stored",
    ),
    Fault(
        "cache_before_slow_map", "ST017", "input",
        python.cache_before_slow_map, python.cache_is_filled,
        "the cache stands before the slow map",
    ),
    Fault(
        "hidden_generator", None, "compute", native.hidden_generator, None,
        "a slow generator, hidden behind slower steps", healthy=True,
    ),
    Fault(
        "ready_batches", None, "compute", native.ready_batches, None,
        "batches that are ready", healthy=True,
    ),
    Fault(
        "arrays_in_memory", None, "compute", native.arrays_in_memory, None,
        "arrays given to fit", healthy=True,
    ),
    Fault(
        "written_serially", None, "compute", native.written_serially, None,
        "serial in the source, parallel at run time", healthy=True,
    ),
)  # fmt: skip
