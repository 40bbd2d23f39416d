"""Physics-informed net for the damped wave equation u_tt + a u_t = c^2 u_xx on [0,1]x[0,1], own loop."""
import json, os, sys, time
import numpy as np
import tensorflow as tf
import keras
try:
    from watched import watch
except ImportError:
    watch = None

CONTROL = os.environ.get("CONTROL") == "1"     # nothing to remove here: this one is as it should be
LOGDIR = sys.argv[1]
keras.utils.set_random_seed(2)
C, A, N_COLL, N_EDGE, STEPS = 1.0, 0.4, 5000, 400, 105


class FourierFeatures(keras.layers.Layer):
    def __init__(self, n, scale, **kw):
        super().__init__(**kw)
        self.b = tf.constant(np.random.normal(0, scale, (2, n)).astype("float32"))

    def call(self, x):
        z = tf.matmul(x, self.b)
        return tf.concat([tf.sin(z), tf.cos(z)], -1)


net = keras.Sequential([keras.Input((2,)), FourierFeatures(32, 2.0)] +
                       [keras.layers.Dense(96, activation="tanh") for _ in range(4)] + [keras.layers.Dense(1)])
schedule = keras.optimizers.schedules.ExponentialDecay(2e-3, 100, .9)
opt = keras.optimizers.Adam(schedule)
opt.build(net.trainable_variables)


def residual(x, t):
    with tf.GradientTape(persistent=True) as outer:
        outer.watch([x, t])
        with tf.GradientTape(persistent=True) as inner:
            inner.watch([x, t])
            u = net(tf.concat([x, t], 1))
        ux, ut = inner.gradient(u, x), inner.gradient(u, t)
    uxx, utt = outer.gradient(ux, x), outer.gradient(ut, t)
    return utt + A * ut - C * C * uxx


@tf.function
def train_step(xt, x0, tb):
    with tf.GradientTape() as tape:
        f = residual(xt[:, :1], xt[:, 1:])
        zeros = tf.zeros_like(x0)
        with tf.GradientTape() as tt:
            tt.watch(zeros)
            u0 = net(tf.concat([x0, zeros], 1))
        v0 = tt.gradient(u0, zeros)
        ub = net(tf.concat([tf.concat([tf.zeros_like(tb), tf.ones_like(tb)], 0), tf.concat([tb, tb], 0)], 1))
        pde = tf.reduce_mean(tf.square(f))
        ic = tf.reduce_mean(tf.square(u0 - tf.sin(np.pi * x0))) + tf.reduce_mean(tf.square(v0))
        bc = tf.reduce_mean(tf.square(ub))
        loss = .05 * pde + 10 * ic + 10 * bc
    grads = tape.gradient(loss, net.trainable_variables)
    opt.apply_gradients(zip(grads, net.trainable_variables))
    return loss, pde, ic, bc


def sample(_):
    return (tf.random.uniform((N_COLL, 2)), tf.random.uniform((N_EDGE, 1)), tf.random.uniform((N_EDGE, 1)))


points = tf.data.Dataset.range(STEPS).map(sample, num_parallel_calls=2).prefetch(4)

history, step_s, first100 = [], [], None
start = time.perf_counter()
for step, (xt, x0, tb) in enumerate(watch(points, LOGDIR) if watch else points):
    t0 = time.perf_counter()
    loss, pde, ic, bc = train_step(xt, x0, tb)
    history.append(float(loss))
    step_s.append(time.perf_counter() - t0)
    if step % 20 == 0:
        print(f"{step:4d} loss {history[-1]:.4f} pde {pde:.4f} ic {ic:.4f} bc {bc:.4f}", flush=True)
    if step == 99:
        first100 = time.perf_counter() - start

compute = sum(step_s[1:100])
print("first step", round(step_s[0], 2), "loss", np.mean(history[:5]), "->", np.mean(history[-5:]))
print(json.dumps({"epoch1_s": round(first100, 2), "blamed_s": round(compute, 2)}))
