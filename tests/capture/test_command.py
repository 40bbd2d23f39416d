"""`stall-analyze capture` records an unchanged script, and passes signals and exit code through."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tb_stall_plugin.capture.command import SWITCH, environment
from tests.capture.capture_logs import records, until
from tests.patience import PATIENCE_S

posix = pytest.mark.skipif(os.name != "posix", reason="signals")
CAPTURE = [sys.executable, "-m", "stall_analyzer", "capture"]

# Enough of TensorFlow and Keras to be imported, which takes no time.
STAND_INS = {
    "tensorflow/__init__.py": "",
    "keras/__init__.py": "from keras.src.backend.tensorflow.trainer import TensorFlowTrainer",
    "keras/src/__init__.py": "",
    "keras/src/backend/__init__.py": "",
    "keras/src/backend/tensorflow/__init__.py": "",
    "keras/src/backend/tensorflow/trainer.py": """
        class TensorFlowTrainer:
            def fit(self, x=None, callbacks=None):
                print("fit", x, [type(callback).__name__ for callback in callbacks or []])
    """,
}


class Project:
    """A folder with a script, and a logdir."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logdir = folder / "logs"

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))

    def start(self, script: str, *options: str) -> subprocess.Popen[str]:
        self.write("train.py", script)
        return subprocess.Popen(
            [*CAPTURE, "--logdir", str(self.logdir), *options, "--", sys.executable, "train.py"],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, script: str, *options: str) -> tuple[int, str, str]:
        child = self.start(script, *options)
        out, said = child.communicate(timeout=PATIENCE_S)
        return child.returncode, out, said


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    for name, text in STAND_INS.items():
        project.write(name, text)
    return project


def test_help_teaches() -> None:
    done = subprocess.run([*CAPTURE, "--help"], capture_output=True, text=True, check=True)
    assert "-- python train.py" in done.stdout and "stall.watch" in done.stdout


@pytest.mark.parametrize("options", [[], ["--"], ["--hang-after", "soon", "--", "true"]])
def test_a_command_line_that_cannot_be_used_is_refused(options: list[str]) -> None:
    done = subprocess.run([*CAPTURE, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "stall-analyze capture" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    done = subprocess.run(
        [*CAPTURE, "--", str(tmp_path / "nothing")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 127 and "cannot run" in done.stderr


def test_a_script_without_tensorflow_runs_as_usual_and_its_exit_code_passes_through(
    project: Project,
) -> None:
    code, out, said = project.run("import sys; print(__name__, sys.argv); sys.exit(3)")
    assert (code, out) == (3, "__main__ ['train.py']\n")
    assert "no process imported TensorFlow" in said
    assert not project.logdir.exists()


def test_a_script_that_fails_is_on_record(project: Project) -> None:
    code, _, said = project.run("import tensorflow\nraise ValueError('no data')")
    assert code == 1 and "ValueError: no data" in said
    assert records(project.logdir)[-1]["reason"] == "exception"


def test_a_loop_without_fit_is_told_about_watch(project: Project) -> None:
    code, _, said = project.run("import tensorflow")
    assert code == 0 and "stall.watch(" in said
    assert f"stall-analyze {project.logdir}" in said
    assert [record["kind"] for record in records(project.logdir)] == ["start", "end"]


@posix
def test_a_script_that_hangs_before_fit_leaves_its_stacks(project: Project) -> None:
    child = project.start(
        "import tensorflow, time\ndef connect():\n    time.sleep(600)\nconnect()",
        "--hang-after", "1",
    )  # fmt: skip

    def hangs() -> list[dict[str, Any]]:
        """The dumps of that place: one may be written before it gets there."""
        dumps = records(project.logdir, "dump")
        place = "train.py:3 connect"
        return [d for d in dumps if d["threads"][0]["frames"][0].endswith(place)]

    until(lambda: project.logdir.exists() and hangs())
    child.terminate()
    _, said = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == -signal.SIGTERM
    assert "No step finished for" in said
    assert hangs()[0]["reason"] == "no_step"


@posix
def test_a_command_that_was_killed_counts_as_killed(project: Project) -> None:
    code, _, _ = project.run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert code == -signal.SIGKILL


def test_a_fit_that_cannot_be_captured_runs_without(project: Project) -> None:
    """StallCallback cannot work with these stand-ins."""
    script = "import keras; keras.TensorFlowTrainer().fit(1, callbacks=[object()])"
    code, out, said = project.run(script)
    assert (code, out) == (0, "fit 1 ['object']\n")
    assert "not captured" in said


def test_input_workers_do_not_record(project: Project) -> None:
    code, out, _ = project.run("""
        import multiprocessing, os

        def work(_):
            import tensorflow
            return os.getpid()

        if __name__ == "__main__":
            import tensorflow
            for method in multiprocessing.get_all_start_methods():
                with multiprocessing.get_context(method).Pool(1) as pool:
                    assert pool.map(work, [0]) != [os.getpid()]
            print("done")
    """)
    assert (code, out) == (0, "done\n")
    assert len(list(project.logdir.iterdir())) == 1


def test_a_sitecustomize_of_the_user_runs_too(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("site/sitecustomize.py", "SETTING = 'theirs'")
    folders = (str(project.folder / "site"), os.environ.get("PYTHONPATH"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, folders)))
    code, out, _ = project.run("import sitecustomize, tensorflow; print(sitecustomize.SETTING)")
    assert (code, out) == (0, "theirs\n")
    assert records(project.logdir, "start")


def test_an_environment_without_the_package_runs_without_a_capture(project: Project) -> None:
    project.write("tb_stall_plugin/__init__.py", "raise ImportError('it is not installed')")
    variables = environment(os.environ, str(project.logdir), None)
    folders = (str(SWITCH), str(project.folder))
    done = subprocess.run(
        [sys.executable, "-c", "print('ran')"],
        env={**variables, "PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "no capture in" in done.stderr and "it is not installed" in done.stderr
