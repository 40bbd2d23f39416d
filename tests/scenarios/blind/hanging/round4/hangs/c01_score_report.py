"""Train a small classifier, then write a per-sample score report with a helper script."""
import os
import subprocess
import sys
import tempfile

import keras
import numpy as np

CONTROL = os.environ.get("BLIND_CONTROL") == "1"

REPORT = """
import sys
import numpy as np
scores = np.load(sys.argv[1])
for i, row in enumerate(scores):
    print(i, int(row.argmax()), " ".join("%.5f" % v for v in row))
print("accuracy rows:", len(scores), file=sys.stderr)
"""


def build_model():
    model = keras.Sequential([
        keras.Input((20,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(5, activation="softmax"),
    ])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def make_report(scores, workdir):
    path = os.path.join(workdir, "scores.npy")
    np.save(path, scores)
    proc = subprocess.Popen(
        [sys.executable, "-c", REPORT, path],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if CONTROL:
        out, err = proc.communicate()
        code = proc.returncode
    else:
        code = proc.wait()
        out, err = proc.stdout.read(), proc.stderr.read()
    if code != 0:
        raise RuntimeError("report failed: " + err)
    return out.splitlines()


def main():
    rng = np.random.default_rng(7)
    x = rng.normal(size=(4000, 20)).astype("float32")
    y = (x[:, :5]).argmax(axis=1)
    model = build_model()
    model.fit(x, y, epochs=3, batch_size=64, verbose=2)
    scores = model.predict(x, batch_size=256, verbose=0)
    with tempfile.TemporaryDirectory() as workdir:
        lines = make_report(scores, workdir)
    print("report has", len(lines), "lines")


if __name__ == "__main__":
    main()
