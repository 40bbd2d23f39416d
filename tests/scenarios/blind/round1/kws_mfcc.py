"""Keyword spotting: MFCC in numpy (from an old feature extraction script), small CNN."""
import tempfile
import wave

from harness import *

SR, N_MELS, N_MFCC, FRAME, HOP = 8000, 40, 20, 256, 80
WORDS = ["yes", "no", "up", "down", "left", "right"]
BATCH = 16


def make_corpus(n):
    root = tempfile.mkdtemp(dir=SCRATCH)
    rng = np.random.default_rng(0)
    paths, labels = [], []
    t = np.arange(SR) / SR
    for i in range(n):
        k = int(rng.integers(len(WORDS)))
        s = 0.4 * np.sin(2 * np.pi * (200 + 150 * k) * t) * np.exp(-3 * t)
        s += 0.05 * rng.standard_normal(SR)
        p = os.path.join(root, f"{WORDS[k]}_{i:04d}.wav")
        with wave.open(p, "wb") as w:
            w.setnchannels(1)
            w.setsampwidth(2)
            w.setframerate(SR)
            w.writeframes((np.clip(s, -1, 1) * 32767).astype("<i2").tobytes())
        paths.append(p)
        labels.append(k)
    return paths, labels


def hz2mel(f):
    return 2595.0 * np.log10(1.0 + f / 700.0)


def mel2hz(m):
    return 700.0 * (10.0 ** (m / 2595.0) - 1.0)


def mel_filterbank():
    pts = mel2hz(np.linspace(hz2mel(20.0), hz2mel(SR / 2), N_MELS + 2))
    bins = np.floor((FRAME + 1) * pts / SR).astype(int)
    fb = np.zeros((N_MELS, FRAME // 2 + 1))
    for m in range(1, N_MELS + 1):
        lo, mid, hi = bins[m - 1], bins[m], bins[m + 1]
        for k in range(lo, mid):
            fb[m - 1, k] = (k - lo) / max(mid - lo, 1)
        for k in range(mid, hi):
            fb[m - 1, k] = (hi - k) / max(hi - mid, 1)
    return fb


def mfcc_numpy(path):
    with wave.open(path.decode(), "rb") as w:
        sig = np.frombuffer(w.readframes(w.getnframes()), "<i2") / 32768.0
    sig = np.append(sig[0], sig[1:] - 0.97 * sig[:-1])
    window = np.hamming(FRAME)
    fb = mel_filterbank()
    n = np.arange(N_MELS)
    dct = np.array([np.cos(np.pi / N_MELS * (n + 0.5) * k) for k in range(N_MFCC)])
    feats = []
    for start in range(0, len(sig) - FRAME + 1, HOP):
        frame = sig[start : start + FRAME] * window
        power = np.abs(np.fft.rfft(frame, FRAME)) ** 2 / FRAME
        mel = np.log(np.dot(fb, power) + 1e-10)
        feats.append(np.dot(dct, mel))
    feats = np.array(feats)
    feats = (feats - feats.mean(0)) / (feats.std(0) + 1e-6)
    return feats.astype("float32")[..., None]


def main(h):
    paths, labels = make_corpus(1216)
    n_frames = (SR - FRAME) // HOP + 1

    def load_np(path, label):
        x = tf.numpy_function(h.timed(mfcc_numpy, "py_function"), [path], tf.float32)
        x.set_shape((n_frames, N_MFCC, 1))
        return x, label

    mel_m = tf.signal.linear_to_mel_weight_matrix(N_MELS, FRAME // 2 + 1, SR, 20.0, SR / 2)

    def load_tf(path, label):
        sig, _ = tf.audio.decode_wav(tf.io.read_file(path), 1, SR)
        sig = sig[:, 0]
        sig = tf.concat([sig[:1], sig[1:] - 0.97 * sig[:-1]], 0)
        spec = tf.abs(tf.signal.stft(sig, FRAME, HOP, FRAME)) ** 2 / FRAME
        mel = tf.math.log(tf.matmul(spec, mel_m) + 1e-10)
        f = tf.signal.mfccs_from_log_mel_spectrograms(mel)[:, :N_MFCC]
        m, v = tf.nn.moments(f, 0)
        f = ((f - m) / (tf.sqrt(v) + 1e-6))[..., None]
        f.set_shape((n_frames, N_MFCC, 1))
        return f, label

    ds = tf.data.Dataset.from_tensor_slices((paths, labels)).shuffle(len(paths), seed=1)
    ds = ds.map(load_tf if h.fixed else load_np, num_parallel_calls=tf.data.AUTOTUNE)
    ds = ds.batch(BATCH).prefetch(tf.data.AUTOTUNE)

    model = keras.Sequential(
        [
            keras.Input((n_frames, N_MFCC, 1)),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.MaxPooling2D(2),
            keras.layers.Conv2D(24, 3, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(len(WORDS), activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    h.fit(model, ds)
