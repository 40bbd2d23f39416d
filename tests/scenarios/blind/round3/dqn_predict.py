"""DQN on cart-pole, as in the tutorials: model.predict for every action and every target."""
import collections
import random

from harness import *


class CartPole:
    def reset(self):
        self.s = np.random.uniform(-0.05, 0.05, 4)
        return self.s.astype("float32")

    def step(self, a):
        x, v, th, w = self.s
        f = 10.0 if a else -10.0
        c, s = np.cos(th), np.sin(th)
        t = (f + 0.05 * w * w * s) / 1.1
        wa = (9.8 * s - c * t) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))
        xa = t - 0.05 * wa * c / 1.1
        self.s = np.array([x + 0.02 * v, v + 0.02 * xa, th + 0.02 * w, w + 0.02 * wa])
        done = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.21
        return self.s.astype("float32"), 1.0, done


def build():
    m = keras.Sequential([keras.Input((4,)), keras.layers.Dense(24, activation="relu"),
                          keras.layers.Dense(24, activation="relu"), keras.layers.Dense(2)])
    m.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse")
    return m


def main(h):
    random.seed(1)
    np.random.seed(1)
    env, model = CartPole(), build()
    memory = collections.deque(maxlen=2000)
    eps, gamma = 0.3, 0.95

    if h.fixed:
        fast = tf.function(lambda s: model(s, training=False), reduce_retracing=True)
        q_values = lambda s: fast(tf.constant(s)).numpy()
    else:
        q_values = lambda s: model.predict(s, verbose=0)
    q_values = h.timed(q_values, "predict")

    state = env.reset()
    for _ in range(64):  # warm up the memory with random actions
        a = random.randrange(2)
        nxt, r, done = env.step(a)
        memory.append((state, a, r, nxt, done))
        state = env.reset() if done else nxt

    with h.loop(model, model.optimizer) as l:
        l.epoch()
        for _ in range(28):
            a = random.randrange(2) if random.random() < eps else int(
                np.argmax(q_values(state[None])[0]))
            nxt, r, done = env.step(a)
            memory.append((state, a, r, nxt, done))
            state = env.reset() if done else nxt
            batch = random.sample(memory, 32)
            s = np.stack([b[0] for b in batch])
            s2 = np.stack([b[3] for b in batch])
            target, future = q_values(s).copy(), q_values(s2)
            for i, (_, act, rew, _, end) in enumerate(batch):
                target[i, act] = rew if end else rew + gamma * future[i].max()
            loss = model.train_on_batch(s, target)
            l.step(loss=float(loss))
