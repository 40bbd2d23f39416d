"""Programs that wait for their input, as people write them, and the same programs put right."""

from __future__ import annotations

from tests.scenarios.faults.base import Fault
from tests.scenarios.faults.input_native import (
    arrays_in_memory,
    batch_of_two,
    batch_of_two_in_one_call,
    data_set_made_each_epoch,
    data_set_made_once,
    gzip_records,
    heavy_map_each_epoch,
    heavy_map_stored,
    hidden_generator,
    input_from_cache,
    input_takes_cores,
    large_pictures,
    map_after_batch,
    map_before_batch,
    one_record_file,
    pictures_stored_small,
    plain_records,
    random_map_parallel,
    random_map_serial,
    ready_batches,
    small_files,
    written_serially,
)
from tests.scenarios.faults.input_python import (
    cache_before_slow_map,
    cache_is_filled,
    cache_on_disk,
    generator_loads_everything,
    generator_parses_text,
    loaded_before_training,
    native_augmentation,
    nothing_prefetched,
    prefetched,
    pydataset_one_worker,
    pydataset_workers,
    python_augmentation,
    python_augmentation_parallel,
    shuffle_after_slow_map,
    shuffle_before_slow_map,
    tensorflow_parses_text,
)

FAULTS = (
    Fault(
        "python_augmentation", "ST001", "input", python_augmentation, native_augmentation,
        "numpy_function augments pictures one by one",
    ),
    Fault(
        "python_augmentation_parallel", "ST001", "input", python_augmentation_parallel,
        native_augmentation, "py_function in a parallel map: the calls share the interpreter",
    ),
    Fault(
        "generator_parses_text", "ST002", "input", generator_parses_text, tensorflow_parses_text,
        "from_generator parses and scales lines of text, row by row",
    ),
    Fault(
        "pydataset_one_worker", "ST002", "input", pydataset_one_worker, pydataset_workers,
        "a PyDataset fetches batches from a slow store with one worker",
    ),
    Fault(
        "random_map_serial", "ST003", "input", random_map_serial, random_map_parallel,
        "random ops keep tf.data from making the map parallel",
    ),
    Fault(
        "nothing_prefetched", "ST004", "input", nothing_prefetched, prefetched,
        "rewrites are off and nothing is prefetched",
    ),
    Fault(
        "shuffle_after_slow_map", "ST005", "input", shuffle_after_slow_map,
        shuffle_before_slow_map, "a large shuffle buffer is filled through a slow map",
    ),
    Fault(
        "cache_is_filled", "ST006", "input", cache_is_filled, cache_on_disk,
        "a cache in memory is filled in the first epoch of each start",
    ),
    Fault(
        "small_files", "ST007", "input", small_files, one_record_file,
        "one tiny file for each row",
    ),
    Fault(
        "large_pictures", "ST008", "input", large_pictures, pictures_stored_small,
        "large JPEGs are decoded whole and then shrunk",
    ),
    Fault(
        "generator_loads_everything", "ST009", "input", generator_loads_everything,
        loaded_before_training, "a generator loads all data before its first yield",
    ),
    Fault(
        "input_takes_cores", "ST010", "input", input_takes_cores, input_from_cache,
        "native input computes on the cores of the step",
    ),
    Fault(
        "batch_of_two", "ST109", "host", batch_of_two, batch_of_two_in_one_call,
        "batches of two rows, one call for each",
    ),
    Fault(
        "gzip_records", "ST013", "input", gzip_records, plain_records,
        "one thread unpacks a gzip TFRecord file",
    ),
    Fault(
        "data_set_made_each_epoch", "ST014", "input", data_set_made_each_epoch,
        data_set_made_once, "the iterator of a long pipeline is made anew in each epoch",
    ),
    Fault(
        "map_before_batch", "ST015", "input", map_before_batch, map_after_batch,
        "two multiplications for each row, mapped row by row",
    ),
    Fault(
        "heavy_map_each_epoch", "ST016", "input", heavy_map_each_epoch, heavy_map_stored,
        "a parallel map computes features that could be stored",
    ),
    Fault(
        "cache_before_slow_map", "ST017", "input", cache_before_slow_map, cache_is_filled,
        "the cache stands before the slow map",
    ),
    Fault(
        "hidden_generator", None, "compute", hidden_generator, None,
        "a slow generator, hidden behind slower steps", healthy=True,
    ),
    Fault(
        "ready_batches", None, "compute", ready_batches, None,
        "batches that are ready", healthy=True,
    ),
    Fault(
        "arrays_in_memory", None, "compute", arrays_in_memory, None,
        "arrays given to fit", healthy=True,
    ),
    Fault(
        "written_serially", None, "compute", written_serially, None,
        "serial in the source, parallel at run time", healthy=True,
    ),
)  # fmt: skip
