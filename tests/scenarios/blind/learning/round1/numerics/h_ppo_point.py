"""PPO with a Gaussian policy: push a point mass back to the origin."""
from common import *

ENVS, HORIZON, GAMMA, LAM = 32, 32, 0.95, 0.9


class PointMass:
    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.s = self.fresh(ENVS)

    def fresh(self, n):
        return self.rng.uniform(-1, 1, size=(n, 2)).astype("float32")

    def step(self, a):
        x, v = self.s[:, 0], self.s[:, 1]
        a = np.clip(a[:, 0], -2, 2)
        v = 0.95 * v + 0.2 * a
        x = np.clip(x + 0.2 * v, -3, 3)
        self.s = np.stack([x, v], 1).astype("float32")
        return -(x ** 2 + 0.1 * v ** 2 + 0.01 * a ** 2).astype("float32")


class ActorCritic(keras.Model):
    def __init__(self):
        super().__init__()
        self.pi = keras.Sequential([keras.Input((2,)), L.Dense(32, activation="tanh"), L.Dense(1, kernel_initializer="zeros")])
        self.v = keras.Sequential([keras.Input((2,)), L.Dense(32, activation="tanh"), L.Dense(1)])
        self.log_std = self.add_weight(shape=(1,), initializer="zeros", name="log_std")

    def call(self, s):
        return self.pi(s), self.v(s)[:, 0]

    def logp(self, mean, a):
        return tf.reduce_sum(-0.5 * ((a - mean) / tf.exp(self.log_std)) ** 2 - self.log_std - 0.919, -1)


def main(log):
    env, net = PointMass(), ActorCritic()
    opt = keras.optimizers.Adam(3e-3)
    opt.build(net.trainable_variables)

    @tf.function
    def act(s):
        mean, v = net(s)
        a = mean + tf.exp(net.log_std) * tf.random.normal(tf.shape(mean))
        return a, net.logp(mean, a), v

    @tf.function
    def update(s, a, old, adv, ret):
        with tf.GradientTape() as tape:
            mean, v = net(s)
            ratio = tf.exp(net.logp(mean, a) - old)
            surr = -tf.reduce_mean(tf.minimum(ratio * adv, tf.clip_by_value(ratio, 0.8, 1.2) * adv))
            loss = surr + 0.05 * tf.reduce_mean((v - ret) ** 2) - 0.002 * tf.reduce_sum(net.log_std)
        g = tape.gradient(loss, net.trainable_variables)
        g, _ = tf.clip_by_global_norm(g, 0.5)
        opt.apply_gradients(zip(g, net.trainable_variables))
        return loss

    shuffle = np.random.default_rng(1)
    with log.loop(net, opt) as (epoch, step):
        for e in range(24):
            epoch()
            env.s = env.fresh(ENVS)
            S, A, P, V, R = [], [], [], [], []
            for _ in range(HORIZON):
                a, lp, v = act(tf.constant(env.s))
                S.append(env.s)
                r = env.step(a.numpy())
                A.append(a.numpy()), P.append(lp.numpy()), V.append(v.numpy()), R.append(r)
            V.append(act(tf.constant(env.s))[2].numpy())
            adv, last = [None] * HORIZON, 0.0
            for t in reversed(range(HORIZON)):
                last = R[t] + GAMMA * V[t + 1] - V[t] + GAMMA * LAM * last
                adv[t] = last
            adv, val = np.concatenate(adv), np.concatenate(V[:-1])
            ret = adv + val
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            S, A, P = np.concatenate(S), np.concatenate(A), np.concatenate(P)
            for _ in range(6):
                order = shuffle.permutation(len(S))
                for k in range(0, len(S), 256):
                    i = order[k:k + 256]
                    loss = update(*(tf.constant(q[i].astype("float32")) for q in (S, A, P, adv, ret)))
                    step(float(loss))
            print(f"epoch {e} return {np.sum(R) / ENVS:.2f}")


if __name__ == "__main__":
    run(main)
