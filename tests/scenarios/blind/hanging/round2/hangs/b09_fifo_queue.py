from common import *
import threading

FILES = {f"part-{i:05d}": 250 + 7 * i for i in range(20)}  # samples in each file
examples = tf.queue.FIFOQueue(2000, [tf.float32, tf.int32], shapes=[(16,), ()])


def reader(files):
    for f in files:
        x, y = arrays(FILES[f])
        examples.enqueue_many([x, y])


names = sorted(FILES)
for k in range(4):
    threading.Thread(target=reader, args=(names[k::4],), daemon=True).start()

net = model()
optimizer = keras.optimizers.Adam()
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step():
    x, y = examples.dequeue_many(64)
    with tf.GradientTape() as tape:
        loss = loss_of(y, net(x, training=True))
    grads = tape.gradient(loss, net.trainable_variables)
    optimizer.apply_gradients(zip(grads, net.trainable_variables))
    return loss


steps = -(-sum(FILES.values()) // 64)
for step in range(steps):
    loss = train_step()
    if step % 20 == 0:
        print(f"step {step}/{steps} loss {float(loss):.4f}", flush=True)
net.save("final.keras")
