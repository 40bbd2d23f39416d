"""Production ranking trainer: TFRecords, a loop of its own, a checkpoint every few steps."""
import tempfile

from harness import *

ITEMS, HIST, BATCH, STEPS, SAVE_EVERY = 100000, 20, 128, 120, 3


def write(path):
    rng = np.random.default_rng(8)
    with tf.io.TFRecordWriter(path) as w:
        for _ in range(3000):
            f = {"hist": tf.train.Feature(int64_list=tf.train.Int64List(
                    value=rng.integers(0, ITEMS, HIST))),
                 "item": tf.train.Feature(int64_list=tf.train.Int64List(
                    value=[rng.integers(0, ITEMS)])),
                 "click": tf.train.Feature(float_list=tf.train.FloatList(
                    value=[float(rng.random() < 0.3)]))}
            w.write(tf.train.Example(features=tf.train.Features(feature=f)).SerializeToString())


class Ranker(keras.Model):
    def __init__(self):
        super().__init__()
        self.items = keras.layers.Embedding(ITEMS, 32)
        self.a = keras.layers.Dense(64, activation="relu")
        self.b = keras.layers.Dense(1)

    def call(self, hist, item):
        u = tf.reduce_mean(self.items(hist), 1)
        return self.b(self.a(tf.concat([u, self.items(item)], -1)))[:, 0]


def main(h):
    folder = tempfile.mkdtemp(dir=SCRATCH)
    path = os.path.join(folder, "train.tfrecord")
    write(path)
    spec = {"hist": tf.io.FixedLenFeature([HIST], tf.int64),
            "item": tf.io.FixedLenFeature([], tf.int64),
            "click": tf.io.FixedLenFeature([], tf.float32)}
    ds = (tf.data.TFRecordDataset(path).repeat().shuffle(1000).batch(BATCH)
          .map(lambda s: tf.io.parse_example(s, spec), num_parallel_calls=tf.data.AUTOTUNE)
          .take(STEPS).prefetch(tf.data.AUTOTUNE))

    model, opt = Ranker(), keras.optimizers.Adam(1e-3)
    model(tf.zeros((1, HIST), tf.int64), tf.zeros((1,), tf.int64))
    opt.build(model.trainable_variables)
    ckpt = tf.train.Checkpoint(model=model, optimizer=opt, step=tf.Variable(0, dtype=tf.int64))
    manager = tf.train.CheckpointManager(ckpt, os.path.join(folder, "ckpt"), max_to_keep=3)

    @tf.function
    def train_step(ex):
        with tf.GradientTape() as tape:
            z = model(ex["hist"], ex["item"])
            loss = tf.reduce_mean(
                tf.nn.sigmoid_cross_entropy_with_logits(labels=ex["click"], logits=z))
        g = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(g, model.trainable_variables))
        return loss

    every = STEPS if h.fixed else SAVE_EVERY
    with h.loop(model, opt) as l:
        l.epoch()
        for ex in ds:
            loss = train_step(ex)
            step = int(ckpt.step.assign_add(1))
            if step % every == 0:
                with h.clock("callback"):
                    manager.save(checkpoint_number=step)
            l.step(loss=loss)
