"""Advantage actor-critic with entropy bonus on a vectorised cart-pole, own loop."""
from common import *

ENVS, HORIZON, GAMMA = 24, 32, 0.98


class CartPoles:
    def __init__(self, n, rng):
        self.rng, self.s, self.age = rng, rng.uniform(-0.05, 0.05, (n, 4)), np.zeros(n)
        self.finished = []

    def step(self, action):
        x, v, th, w = self.s.T
        force = np.where(action == 1, 10.0, -10.0)
        cos, sin = np.cos(th), np.sin(th)
        temp = (force + 0.05 * w**2 * sin) / 1.1
        acc_th = (9.8 * sin - cos * temp) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        acc = temp - 0.05 * acc_th * cos / 1.1
        self.s = np.stack([x + 0.02 * v, v + 0.02 * acc, th + 0.02 * w, w + 0.02 * acc_th], 1)
        self.age += 1
        done = (np.abs(self.s[:, 0]) > 2.4) | (np.abs(self.s[:, 2]) > 0.21) | (self.age >= 200)
        self.finished += list(self.age[done])
        self.s[done] = self.rng.uniform(-0.05, 0.05, (done.sum(), 4))
        self.age[done] = 0
        return done


class ActorCritic(keras.Model):
    def __init__(self):
        super().__init__()
        self.a = L.Dense(64, activation="tanh")
        self.c = L.Dense(64, activation="tanh")
        self.policy, self.value = L.Dense(2), L.Dense(1)

    def call(self, s):
        return self.policy(self.a(s)), self.value(self.c(s))[:, 0]


def main(log):
    rng = np.random.default_rng(5)
    envs = CartPoles(ENVS, rng)
    model = ActorCritic()
    model(np.zeros((1, 4), "float32"))
    opt = keras.optimizers.Adam(2e-3, global_clipnorm=1.0)
    opt.build(model.trainable_variables)

    @tf.function
    def act(s):
        logits, value = model(s)
        return tf.random.categorical(logits, 1)[:, 0], value

    @tf.function
    def train(s, a, ret, adv):
        with tf.GradientTape() as tape:
            logits, value = model(s)
            logp = tf.nn.log_softmax(logits)
            chosen = tf.reduce_sum(logp * tf.one_hot(a, 2), axis=1)
            entropy = -tf.reduce_mean(tf.reduce_sum(tf.exp(logp) * logp, axis=1))
            loss = -tf.reduce_mean(chosen * adv) + 0.05 * tf.reduce_mean(tf.square(ret - value)) - 0.01 * entropy
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    lengths = []
    with log.loop(model, opt) as (epoch, step):
        for _ in range(10):
            epoch()
            envs.finished = []
            for _ in range(15):
                S, A, V, D = [], [], [], []
                for _ in range(HORIZON):
                    s = envs.s.astype("float32")
                    a, v = act(tf.constant(s))
                    S.append(s), A.append(a.numpy()), V.append(v.numpy())
                    D.append(envs.step(A[-1]))
                ret, R = [], act(tf.constant(envs.s.astype("float32")))[1].numpy()
                for d in reversed(D):
                    R = 1.0 + GAMMA * R * (1 - d)
                    ret.append(R)
                ret = np.concatenate(ret[::-1]).astype("float32")
                adv = ret - np.concatenate(V)
                adv = (adv - adv.mean()) / (adv.std() + 1e-6)
                step(train(np.concatenate(S), np.concatenate(A), ret, adv.astype("float32")))
            lengths.append(float(np.mean(envs.finished or [200])))
    return lengths


if __name__ == "__main__":
    run(main)
