"""What a line of a script produces: training data, or something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_stall_plugin.capture.process.used_as_data import becomes_data

HERE = "  # here"


@pytest.mark.parametrize(
    ("lines", "is_data"),
    [
        (["x = load()" + HERE, "model.fit(x)"], True),
        (["x = load()" + HERE, "y = x / 255", "model.fit(y, epochs=2)"], True),
        (["for part in parts:", "    rows.extend(read(part))" + HERE, "model.fit(rows)"], True),
        (
            ["q.put(load())" + HERE, "def give():", "    yield q.get()", "from_generator(give)"],
            True,
        ),
        (["def train(a, b):", "    b.fit(a)", "x = load()" + HERE, "train(x, m)"], True),
        (["@tf.function", "def step(a):", "    return a", "x = get()" + HERE, "step(x)"], True),
        (["model.load_weights(download())" + HERE, "x = load()", "model.fit(x)"], False),
        (["weights = download()" + HERE, "x = load()", "model.fit(x)"], False),
        (["if input() != 'y':" + HERE, "    raise SystemExit", "model.fit(x)"], False),
        (["import slow" + HERE, "model.fit(x)"], False),
    ],
)
def test_what_goes_into_fit_or_a_dataset_is_data(
    tmp_path: Path, lines: list[str], is_data: bool
) -> None:
    script = tmp_path / "train.py"
    script.write_text("\n".join(lines))
    line = next(number for number, text in enumerate(lines, 1) if text.endswith(HERE))
    assert becomes_data([(str(script), line)]) == is_data


def test_nothing_is_said_of_a_script_that_cannot_be_read(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("x = = load()")
    assert not becomes_data([(str(script), 1), ("/nowhere/train.py", 1)])
