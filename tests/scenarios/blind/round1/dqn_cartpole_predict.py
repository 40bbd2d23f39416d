"""Deep Q-learning on a pole on a cart, after the well known tutorial."""
import math
import random
from collections import deque

from harness import *


class CartPole:
    def reset(self):
        self.s = np.random.uniform(-0.05, 0.05, 4)
        return self.s.copy()

    def step(self, action):
        x, v, th, w = self.s
        force = 10.0 if action == 1 else -10.0
        c, s = math.cos(th), math.sin(th)
        tmp = (force + 0.05 * w * w * s) / 1.1
        acc = (9.8 * s - c * tmp) / (0.5 * (4 / 3 - 0.1 * c * c / 1.1))
        xa = tmp - 0.05 * acc * c / 1.1
        self.s = np.array([x + 0.02 * v, v + 0.02 * xa, th + 0.02 * w, w + 0.02 * acc])
        done = abs(self.s[0]) > 2.4 or abs(self.s[2]) > 0.21
        return self.s.copy(), (-10.0 if done else 1.0), done


class DQNAgent:
    def __init__(self, h):
        self.h = h
        self.memory = deque(maxlen=2000)
        self.gamma, self.epsilon = 0.95, 0.1
        self.model = self.build()
        self.target = self.build()
        self.target.set_weights(self.model.get_weights())

    def build(self):
        m = keras.Sequential(
            [
                keras.Input((4,)),
                keras.layers.Dense(24, activation="relu"),
                keras.layers.Dense(24, activation="relu"),
                keras.layers.Dense(2, activation="linear"),
            ]
        )
        m.compile(loss="mse", optimizer=keras.optimizers.Adam(learning_rate=0.001))
        return m

    def q(self, net, states):
        with self.h.clock("predict"):
            if self.h.fixed:
                return np.array(net.predict_on_batch(states))
            return net.predict(states, verbose=0)

    def act(self, state):
        values = self.q(self.model, state[None])
        if random.random() <= self.epsilon:
            return random.randrange(2)
        return int(np.argmax(values[0]))

    def replay(self, batch_size):
        batch = random.sample(self.memory, batch_size)
        states = np.array([b[0] for b in batch])
        nexts = np.array([b[3] for b in batch])
        targets = self.q(self.model, states)
        future = self.q(self.target, nexts)
        for i, (_, a, r, _, done) in enumerate(batch):
            targets[i][a] = r if done else r + self.gamma * np.amax(future[i])
        return self.model.train_on_batch(states, targets)


def main(h):
    random.seed(0)
    np.random.seed(0)
    env = CartPole()
    agent = DQNAgent(h)
    state = env.reset()
    for _ in range(200):  # warm up with a random policy
        a = random.randrange(2)
        nxt, r, done = env.step(a)
        agent.memory.append((state, a, r, nxt, done))
        state = env.reset() if done else nxt

    with h.loop(agent.model, agent.model.optimizer) as l:
        l.epoch()
        state, scores, score = env.reset(), [], 0
        for step in range(30):
            a = agent.act(state)
            nxt, r, done = env.step(a)
            agent.memory.append((state, a, r, nxt, done))
            state = nxt
            score += 1
            if done:
                scores.append(score)
                state, score = env.reset(), 0
                agent.target.set_weights(agent.model.get_weights())
            loss = agent.replay(32)
            l.step(loss=loss)
