"""Distillation: the Sequence asks the teacher for soft labels, batch by batch."""
from harness import *

L = keras.layers
TEMP = 4.0


class SoftLabels(keras.utils.PyDataset):
    def __init__(self, h, x, y, teacher, soft=None, bs=32, **kw):
        super().__init__(**kw)
        self.x, self.y, self.teacher, self.soft, self.bs = x, y, teacher, soft, bs
        self.get = h.timed(self._get, "py_function")

    def __len__(self):
        return len(self.x) // self.bs

    def _get(self, i):
        s = slice(i * self.bs, (i + 1) * self.bs)
        x = self.x[s]
        soft = self.teacher.predict(x, verbose=0) if self.soft is None else self.soft[s]
        return x, np.concatenate([soft, np.eye(10, dtype="float32")[self.y[s]]], -1)

    def __getitem__(self, i):
        return self.get(i)


def kd_loss(y, logits):
    soft, hard = y[:, :10], y[:, 10:]
    kl = keras.losses.kl_divergence(keras.ops.softmax(soft / TEMP), keras.ops.softmax(logits / TEMP))
    ce = keras.losses.categorical_crossentropy(hard, logits, from_logits=True)
    return 0.7 * kl * TEMP**2 + 0.3 * ce


def main(h):
    rng = np.random.default_rng(0)
    x = rng.random((1920, 32, 32, 3), dtype="float32")
    y = rng.integers(0, 10, 1920)
    teacher = keras.Sequential([keras.Input((32, 32, 3))])
    for f in (32, 32, 64, 64):
        teacher.add(L.Conv2D(f, 3, padding="same", activation="relu"))
        if f == 64 or len(teacher.layers) == 2:
            teacher.add(L.MaxPooling2D())
    teacher.add(L.GlobalAveragePooling2D())
    teacher.add(L.Dense(10))
    student = keras.Sequential([keras.Input((32, 32, 3)), L.Conv2D(8, 3, strides=2, activation="relu"),
                                L.Conv2D(16, 3, strides=2, activation="relu"),
                                L.GlobalAveragePooling2D(), L.Dense(10)])
    student.compile("adam", kd_loss)
    soft = teacher.predict(x, batch_size=128, verbose=0) if h.fixed else None
    h.fit(student, SoftLabels(h, x, y, teacher, soft))
