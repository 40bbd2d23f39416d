"""DQN on a tiny pole-balancing simulator (no gym here). The agent plays while it learns."""
import json, os, random, sys, time
from collections import deque
import numpy as np
import tensorflow as tf
import keras
try:
    from watched import watch
except ImportError:
    watch = None

CONTROL = os.environ.get("CONTROL") == "1"
LOGDIR = sys.argv[1]
random.seed(0); np.random.seed(0); tf.random.set_seed(0)


class Pole:
    """Cart-pole, Euler steps, as in Barto & Sutton."""
    def reset(self):
        self.s = np.random.uniform(-.05, .05, 4)
        return self.s.astype("float32")

    def step(self, a):
        x, v, th, w = self.s
        f = 10. if a else -10.
        tmp = (f + .05 * w * w * np.sin(th)) / 1.1
        acc = (9.8 * np.sin(th) - np.cos(th) * tmp) / (.5 * (4 / 3 - .1 * np.cos(th) ** 2 / 1.1))
        xa = tmp - .05 * acc * np.cos(th) / 1.1
        self.s = np.array([x + .02 * v, v + .02 * xa, th + .02 * w, w + .02 * acc])
        done = abs(self.s[0]) > 2.4 or abs(self.s[2]) > .21
        return self.s.astype("float32"), 0. if done else 1., done


def q_net():
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(64, activation="relu"),
                             keras.layers.Dense(64, activation="relu"), keras.layers.Dense(2)])


class Agent:
    def __init__(self):
        self.q, self.target = q_net(), q_net()
        self.opt = keras.optimizers.Adam(1e-3)
        self.opt.build(self.q.trainable_variables)
        self.memory = deque(maxlen=5000)
        self.eps, self.act_s = .2, 0.
        self.fast = tf.function(lambda s: tf.argmax(self.q(s), -1), input_signature=[tf.TensorSpec((1, 4))])

    def act(self, s):
        if random.random() < self.eps:
            return random.randrange(2)
        t0 = time.perf_counter()
        if CONTROL:
            a = int(self.fast(s[None])[0])
        else:
            a = int(np.argmax(self.q.predict(s[None], verbose=0)[0]))
        self.act_s += time.perf_counter() - t0
        return a

    @tf.function
    def learn(self, s, a, r, s2, d):
        y = r + .97 * (1 - d) * tf.reduce_max(self.target(s2), -1)
        with tf.GradientTape() as tape:
            q = tf.gather(self.q(s), a, batch_dims=1)
            loss = tf.reduce_mean(tf.square(y - q))
        g = tape.gradient(loss, self.q.trainable_variables)
        self.opt.apply_gradients(zip(g, self.q.trainable_variables))
        return loss


def experience(agent, env, play=1, batch=64):
    """Play a little, then hand out a minibatch from the replay memory."""
    s = env.reset()
    for _ in range(500):                                   # warm-up with random moves
        a = random.randrange(2)
        s2, r, d = env.step(a)
        agent.memory.append((s, a, r, s2, float(d)))
        s = env.reset() if d else s2
    while True:
        for _ in range(play):
            a = agent.act(s)
            s2, r, d = env.step(a)
            agent.memory.append((s, a, r, s2, float(d)))
            s = env.reset() if d else s2
        rows = random.sample(agent.memory, batch)
        S, A, R, S2, D = map(np.array, zip(*rows))
        yield S, A.astype("int32"), R.astype("float32"), S2, D.astype("float32")


agent, env = Agent(), Pole()
stream = experience(agent, env)
start, losses, first100 = time.perf_counter(), [], None
for step, b in enumerate(watch(stream, LOGDIR) if watch else stream):
    losses.append(float(agent.learn(*b)))
    if step % 25 == 0:
        agent.target.set_weights(agent.q.get_weights())
        print("step", step, "td loss", round(np.mean(losses[-25:]), 4), flush=True)
    if step == 99:
        first100 = time.perf_counter() - start, agent.act_s
    if step >= 105:
        break
print(json.dumps({"epoch1_s": round(first100[0], 2), "blamed_s": round(first100[1], 2)}))
