from common import *
import hashlib
import json

N = 120_000
WORDS = "the model reads every line of the corpus and hashes its words into sixteen bins".split()


def lines():
    for i in range(N):
        words = [WORDS[(i * k) % len(WORDS)] + str(k % 97) for k in range(1200)]
        yield json.dumps({"label": i % 4, "text": " ".join(words)})


def examples():
    for line in lines():
        record = json.loads(line)
        x = np.zeros(16, "float32")
        for word in record["text"].split():
            x[hashlib.md5(word.encode()).digest()[0] % 16] += 1
        yield x / x.sum(), record["label"]


train = (
    tf.data.Dataset.from_generator(
        examples, output_signature=(tf.TensorSpec((16,), tf.float32), tf.TensorSpec((), tf.int32))
    )
    .shuffle(N)
    .batch(64)
    .prefetch(2)
)
model().fit(train, epochs=2, verbose=2)
