"""REINFORCE on a contextual bandit: see an iris, pick one of three arms, reward one for the right one."""
from common import *


def main(log):
    x, y = load("iris")
    x = standardised(x).astype("float32")
    rng = np.random.default_rng(0)

    policy = keras.Sequential([keras.Input((4,)), L.Dense(32, activation="tanh"), L.Dense(3)])
    optimizer = keras.optimizers.Adam(3e-3)

    @tf.function
    def update(states, actions, advantages):
        with tf.GradientTape() as tape:
            logits = policy(states, training=True)
            logp = -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=actions, logits=logits)
            p = tf.nn.softmax(logits)
            entropy = -tf.reduce_mean(tf.reduce_sum(p * tf.math.log(p + 1e-8), -1))
            loss = -tf.reduce_mean(logp * advantages) - 0.01 * entropy
        grads = tape.gradient(loss, policy.trainable_variables)
        optimizer.apply_gradients(zip(grads, policy.trainable_variables))
        return loss

    act = tf.function(lambda s: tf.random.categorical(policy(s), 1, dtype=tf.int32)[:, 0])
    baseline = 1 / 3
    with log.loop(policy, optimizer) as (epoch, step):
        for e in range(10):
            epoch()
            rewards = []
            for _ in range(40):
                i = rng.integers(0, len(x), 32)
                actions = act(tf.constant(x[i]))
                reward = (actions.numpy() == y[i]).astype("float32")
                loss = update(tf.constant(x[i]), actions, tf.constant(reward - np.float32(baseline)))
                baseline = 0.95 * baseline + 0.05 * float(reward.mean())
                rewards.append(reward.mean())
                step(float(loss))
            print("epoch", e, "mean reward", round(float(np.mean(rewards)), 3))


if __name__ == "__main__":
    run(main)
