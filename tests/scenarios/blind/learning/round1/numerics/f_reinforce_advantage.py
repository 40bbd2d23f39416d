"""REINFORCE: an agent looks at a digit, names it, and gets a reward of 1 if it was right (contextual bandit)."""
from common import *


def main(log):
    x, y = load("digits")
    x = (x / 16.0).astype("float32")
    rng = np.random.default_rng(0)
    policy = keras.Sequential([keras.Input((64,)), L.Dense(64, activation="tanh"), L.Dense(10)])
    opt = keras.optimizers.Adam(3e-3)
    opt.build(policy.trainable_variables)

    @tf.function
    def act(states):
        return tf.random.categorical(policy(states), 1)          # (batch, 1)

    @tf.function
    def update(states, actions, advantages):
        with tf.GradientTape() as tape:
            logp = tf.nn.log_softmax(policy(states))
            chosen = tf.gather(logp, actions, batch_dims=1)
            loss = -tf.reduce_mean(chosen * advantages)
        grads = tape.gradient(loss, policy.trainable_variables)
        opt.apply_gradients(zip(grads, policy.trainable_variables))
        return loss

    with log.loop(policy, opt) as (epoch, step):
        for e in range(10):
            epoch()
            got = []
            for _ in range(60):
                idx = rng.integers(0, len(x), 256)
                states = tf.constant(x[idx])
                actions = act(states)
                rewards = (actions.numpy()[:, 0] == y[idx]).astype("float32")
                adv = (rewards - rewards.mean()) / (rewards.std() + 1e-8)
                loss = update(states, actions, tf.constant(adv))
                step(float(loss))
                got.append(rewards.mean())
            print(f"epoch {e} mean reward {np.mean(got):.3f}")


if __name__ == "__main__":
    run(main)
