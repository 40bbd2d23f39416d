from common import *
import subprocess
import sys

service = tf.data.experimental.service
dispatcher = service.DispatchServer(service.DispatcherConfig(port=0))
address = dispatcher.target.split("://")[1]

# the input workers run beside us and register at the dispatcher
workers = [
    subprocess.Popen([sys.executable, "-m", "input_worker", "--dispatcher", address],
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(2)
]

x, y = arrays(6400)
train = (
    tf.data.Dataset.from_tensor_slices((x, y))
    .shuffle(1000)
    .repeat()
    .batch(64)
    .apply(service.distribute(service.ShardingPolicy.OFF, dispatcher.target, job_name="train"))
    .prefetch(tf.data.AUTOTUNE)
)
net = model()
net.fit(x, y, batch_size=64, epochs=1, verbose=2)  # warm up on the local part
net.fit(train, epochs=5, steps_per_epoch=100, verbose=2)
