"""Preprocessing moved out to tf.data service, everything on this one machine for now."""
import os

import keras
import numpy as np
import tensorflow as tf

CONTROL = os.environ.get("BLIND_CONTROL") == "1"
service = tf.data.experimental.service


def start_service():
    dispatcher = service.DispatchServer(service.DispatcherConfig(port=0))
    address = dispatcher.target.split("://")[1]
    workers = [
        service.WorkerServer(service.WorkerConfig(dispatcher_address=address, heartbeat_interval_ms=500))
        for _ in range(2)
    ]
    print("dispatcher", dispatcher.target, "with", len(workers), "workers")
    if CONTROL:
        return dispatcher, workers
    return dispatcher, None


def augment(x, y):
    x = x + tf.random.normal(tf.shape(x), stddev=0.05)
    return tf.clip_by_value(x, 0.0, 1.0), y


def main():
    keras.utils.set_random_seed(9)
    dispatcher, workers = start_service()

    x = np.random.rand(1500, 16, 16, 1).astype("float32")
    y = np.random.randint(0, 5, size=1500)
    ds = tf.data.Dataset.from_tensor_slices((x, y)).map(augment).batch(32)
    ds = ds.apply(service.distribute(
        processing_mode=service.ShardingPolicy.DYNAMIC, service=dispatcher.target))
    ds = ds.prefetch(2)

    model = keras.Sequential([
        keras.Input((16, 16, 1)),
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(5),
    ])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(ds, epochs=2, verbose=2)
    print("finished")


if __name__ == "__main__":
    main()
