"""Distillation: a teacher, a student, a loop of one's own, numpy's confusion matrix."""
from harness import *

CLASSES = 8


def conv_net(widths, name):
    inp = keras.Input((40, 40, 3))
    x = inp
    for w in widths:
        x = keras.layers.Conv2D(w, 3, padding="same", activation="relu")(x)
        x = keras.layers.Conv2D(w, 3, padding="same", activation="relu")(x)
        x = keras.layers.MaxPooling2D()(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    return keras.Model(inp, keras.layers.Dense(CLASSES)(x), name=name)


def confusion(y, p):
    m = np.zeros((CLASSES, CLASSES), int)
    for a, b in zip(y, p):
        m[a, b] += 1
    return m


def main(h):
    rng = np.random.default_rng(6)
    proto = rng.normal(size=(CLASSES, 40, 40, 3)).astype("float32")

    def batches():
        r = np.random.default_rng(7)
        for _ in range(40):
            y = r.integers(0, CLASSES, 32)
            x = proto[y]
            x = np.roll(x, int(r.integers(-4, 5)), axis=2)
            yield x, y

    spec = (tf.TensorSpec((32, 40, 40, 3), tf.float32), tf.TensorSpec((32,), tf.int64))
    ds = tf.data.Dataset.from_generator(h.gen(batches), output_signature=spec).prefetch(2)

    teacher = conv_net((32, 64, 64), "teacher")
    teacher.trainable = False
    student = conv_net((16, 24, 32), "student")
    opt = keras.optimizers.SGD(0.05, momentum=0.9)
    opt.build(student.trainable_variables)
    T = 4.0

    @tf.function
    def train_step(x, y):
        soft = tf.nn.softmax(teacher(x, training=False) / T)
        with tf.GradientTape() as tape:
            logits = student(x, training=True)
            hard = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
            kd = tf.nn.softmax_cross_entropy_with_logits(soft, logits / T) * T * T
            loss = tf.reduce_mean(0.3 * hard + 0.7 * kd)
        g = tape.gradient(loss, student.trainable_variables)
        opt.apply_gradients(zip(g, student.trainable_variables))
        return loss, tf.argmax(logits, 1)

    with h.loop(student, opt) as l:
        for epoch in range(2):
            l.epoch()
            cm = np.zeros((CLASSES, CLASSES), int)
            running = 0.0
            for x, y in ds:
                loss, pred = train_step(x, y)
                running = 0.95 * running + 0.05 * float(loss)
                cm += confusion(y.numpy(), pred.numpy())
                l.step(loss=loss)
