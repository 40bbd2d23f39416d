"""DQN on a cart-pole written in numpy: replay memory, model.predict for the action and for the target."""
from harness import *
from collections import deque
import random

GAMMA, BATCH, STEPS = 0.98, 32, 20


class CartPole:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.s = self.rng.uniform(-0.05, 0.05, 4)
        return self.s.astype("float32")

    def step(self, a):
        x, v, th, w = self.s
        f = 10.0 if a else -10.0
        c, s = np.cos(th), np.sin(th)
        t = (f + 0.05 * w * w * s) / 1.1
        wa = (9.8 * s - c * t) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))
        va = t - 0.05 * wa * c / 1.1
        self.s = np.array([x + 0.02 * v, v + 0.02 * va, th + 0.02 * w, w + 0.02 * wa])
        return self.s.astype("float32"), 1.0, bool(abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.21)


def build():
    return keras.Sequential([
        keras.layers.Input((4,)),
        keras.layers.Dense(24, activation="relu"),
        keras.layers.Dense(24, activation="relu"),
        keras.layers.Dense(2),
    ])


def main(h):
    random.seed(0)
    keras.utils.set_random_seed(0)
    model, target = build(), build()
    target.set_weights(model.get_weights())
    opt = keras.optimizers.Adam(1e-3)
    model.compile(opt, "mse")
    memory, env, eps = deque(maxlen=5000), CartPole(0), 0.05
    s = env.reset()
    for _ in range(300):  # warm up at random
        a = random.randrange(2)
        s2, r, done = env.step(a)
        memory.append((s, a, r, s2, done))
        s = env.reset() if done else s2

    q_of = tf.function(lambda x: model(x, training=False))
    t_of = tf.function(lambda x: target(x, training=False))

    def q(x):
        with h.clock("predict"):
            return q_of(x).numpy() if h.fixed else model.predict(x, verbose=0)

    def tq(x):
        with h.clock("predict"):
            return t_of(x).numpy() if h.fixed else target.predict(x, verbose=0)

    with h.loop(model, opt) as l:
        l.epoch()
        s = env.reset()
        for i in range(STEPS):
            a = random.randrange(2) if random.random() < eps else int(np.argmax(q(s[None])[0]))
            s2, r, done = env.step(a)
            memory.append((s, a, r, s2, done))
            s = env.reset() if done else s2
            b = random.sample(memory, BATCH)
            bs, ba, br, bn, bd = (np.array(v) for v in zip(*b))
            y = q(bs).copy()
            y[np.arange(BATCH), ba] = br + GAMMA * tq(bn).max(1) * (1 - bd)
            loss = model.train_on_batch(bs, y)
            l.step(loss=float(loss))
            if i % 10 == 9:
                target.set_weights(model.get_weights())
