"""REINFORCE with a moving baseline: the agent sees a flower and is paid 1 for the right of three buttons."""
from common import *


def main(log):
    x, y = load("iris")
    x, y = standardised(x).astype("float32"), y.astype("int64")
    policy = keras.Sequential([keras.Input((4,)), L.Dense(32, activation="tanh"), L.Dense(3)])
    optimizer = keras.optimizers.Adam(5e-3)
    rng, baseline, paid = np.random.default_rng(4), 0.33, []

    @tf.function
    def update(s, a, advantage):
        with tf.GradientTape() as tape:
            logp = tf.nn.log_softmax(policy(s, training=True))
            chosen = tf.reduce_sum(logp * tf.one_hot(a, 3), 1)
            entropy = -tf.reduce_mean(tf.reduce_sum(tf.exp(logp) * logp, 1))
            loss = -tf.reduce_mean(chosen * advantage) - 0.01 * entropy
        grads = tape.gradient(loss, policy.trainable_variables)
        optimizer.apply_gradients(zip(grads, policy.trainable_variables))
        return loss

    act = tf.function(lambda s: tf.random.categorical(policy(s), 1)[:, 0])
    with log.loop(policy, optimizer) as (epoch, step):
        for _ in range(10):
            epoch()
            rewards = []
            for _ in range(40):
                rows = rng.integers(0, 150, 32)
                a = act(x[rows])
                r = (a.numpy() == y[rows]).astype("float32")
                step(float(update(x[rows], a, r - np.float32(baseline))))
                baseline = 0.95 * baseline + 0.05 * float(r.mean())
                rewards.append(r.mean())
            paid.append(round(float(np.mean(rewards)), 3))
    return {"reward": paid}


if __name__ == "__main__":
    run(main)
