"""The one-file report: complete, self-contained, and safe whatever the names in it are."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from stall_analyzer import __version__
from stall_analyzer.cli import main as cli
from stall_analyzer.report import html
from tests.real_documents import ROOT, document, sample

Capsys = pytest.CaptureFixture[str]
SAMPLES = ROOT / "sample_logs"
BUNDLE = "export function render() { return '</script><!--<script>' }"


@pytest.fixture(autouse=True)
def small_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real bundle is tested in a browser; here, only its place matters."""
    path = tmp_path / "index.js"
    path.write_text(BUNDLE)
    monkeypatch.setattr(html, "bundle_path", lambda: path)


class Scripts(HTMLParser):
    """The script elements as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[dict[str, str | None], str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self.found.append((dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self.found and self.lasttag == "script":
            attributes, text = self.found[-1]
            self.found[-1] = attributes, text + data


def data_in(text: str) -> dict[str, Any]:
    scripts = Scripts(text).found
    assert [attributes.get("type") for attributes, _ in scripts] == ["application/json", "module"]
    attributes, content = scripts[0]
    assert attributes["id"] == "stall-data"
    return dict(json.loads(content))


def test_it_holds_all_that_the_page_asks_for(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    assert cli.main([str(SAMPLES), "--html", str(target)]) == 0
    data = data_in(target.read_text(encoding="utf-8"))
    names = {run["run"] for run in data["runs"]["runs"]}
    assert names == set(data["reports"]) == set(data["timelines"])
    assert all(run["state"] == "ready" for run in data["runs"]["runs"])
    for name, parts in data["timelines"].items():
        whole, *others = parts
        eighths = [part for part in others if part["end_ps"] - part["start_ps"] < whole["end_ps"]]
        duration = data["reports"][name]["report"]["window"]["duration_ps"]
        assert (whole["start_ps"], whole["end_ps"]) == (0, duration)
        assert len(eighths) == 8
        assert [part["start_ps"] for part in eighths[1:]] == [p["end_ps"] for p in eighths[:-1]]
    found = {f["id"] for a in data["reports"].values() for f in a["report"]["findings"]}
    assert set(data["manuals"]) == found


def test_the_page_says_what_it_is_about_and_when_and_by_what_it_was_written(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    logdir = str(SAMPLES / "healthy")
    cli.main([logdir, "--html", str(target)])
    text = target.read_text(encoding="utf-8")
    data = data_in(text)
    assert data["runs"]["logdir"] == logdir
    assert data["runs"]["version"] == __version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", data["written"])
    assert f"<title>Stall: {logdir}</title>" in text


def test_nothing_is_fetched_and_nothing_may_be(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    cli.main([str(SAMPLES / "healthy"), "--html", str(target)])
    text = target.read_text(encoding="utf-8")
    assert not re.search(r"(?:src|href)\s*=", text)
    assert "https://" not in text and "http://" not in text
    assert "default-src 'none'" in text


def test_names_cannot_end_the_script_they_are_in() -> None:
    hostile = "</script><script>alert(1)</script><!--\u2028"
    run = sample("healthy", run=hostile)
    run["verdict"]["sentence"] = hostile
    text = html.render(document(run), [None])
    data = data_in(text)
    assert [entry["run"] for entry in data["runs"]["runs"]] == [hostile]
    assert data["reports"][hostile]["report"]["verdict"]["sentence"] == hostile


def test_the_bundle_cannot_end_its_script_either() -> None:
    text = html.render(document(sample("healthy")), [None])
    _, script = Scripts(text).found[1]
    assert script.strip().replace("\\", "") == BUNDLE


def test_every_host_has_its_timeline(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    cli.main([str(SAMPLES / "communication_straggler"), "--html", str(target)])
    ((first, second, *parts),) = data_in(target.read_text())["timelines"].values()
    assert {first["host"], second["host"]} == {"host-worker-0", "host-worker-1"}
    assert (first["start_ps"], first["end_ps"]) == (second["start_ps"], second["end_ps"])
    assert {part["host"] for part in parts} == {first["host"]}


def test_many_runs_share_the_space_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def part(start: int, end: int) -> dict[str, Any]:
        lanes = [{"rows": [[4, 0], [0, 0], [6, 1]]}]
        return {"start_ps": start, "end_ps": end, "duration_ps": 8, "lanes": lanes}

    parts = [part(0, 8), part(0, 4), part(4, 8)]
    four = document(*(sample("healthy", run=name) for name in "abcd"))
    kept = []
    for most in (120, 119, 25):
        monkeypatch.setattr(html, "MOST_ITEMS_IN_ALL", most)
        timelines = data_in(html.render(four, [parts] * 4))["timelines"]
        kept.append([len(of_run) for of_run in timelines.values()])
    assert kept == [[3, 3, 3, 3], [1, 1, 1, 1], [1, 1, 0, 0]]


def test_only_the_costliest_of_very_many_runs_are_in_it_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "MOST_RUNS", 2)
    target = tmp_path / "report.html"
    assert cli.main([str(SAMPLES), "--html", str(target)]) == 0
    data = data_in(target.read_text(encoding="utf-8"))
    fleet = data["runs"]["fleet"]
    assert len(data["runs"]["runs"]) == fleet["runs"] == len(list(SAMPLES.iterdir()))
    assert set(data["reports"]) == {run["run"] for run in fleet["costliest_runs"][:2]}
    assert all(data["timelines"].values())


def test_two_runs_of_one_name_keep_their_own_reports() -> None:
    runs = [sample("healthy", run="a"), sample("numerics_nan", run="a")]
    data = data_in(html.render(document(*runs), [None, None]))
    assert [run["run"] for run in data["runs"]["runs"]] == ["a", "a (another)"]
    assert data["reports"]["a (another)"]["report"]["buckets_ps"]["numerics"] > 0


def test_a_large_run_is_drawn_more_coarsely(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sizes = []
    for most in (10**9, 200):
        monkeypatch.setattr(html, "MOST_ITEMS", most)
        target = tmp_path / "report.html"
        cli.main([str(SAMPLES / "numerics_nan"), "--html", str(target)])
        sizes.append(target.stat().st_size)
    assert sizes[1] < sizes[0]


def test_without_the_page_the_command_says_so_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(html, "find_spec", lambda name: None)
    assert cli.main([str(SAMPLES), "--html", str(tmp_path / "report.html")]) == 2
    assert "tb_stall_plugin/static/index.js" in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()


def test_an_impossible_file_is_refused(tmp_path: Path, capsys: Capsys) -> None:
    assert cli.main([str(SAMPLES), "--html", str(tmp_path)]) == 2
    assert "it is a directory" in capsys.readouterr().err


def test_the_text_report_comes_too_when_asked_for(tmp_path: Path, capsys: Capsys) -> None:
    target = tmp_path / "report.html"
    cli.main([str(SAMPLES / "healthy"), "--html", str(target)])
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == f"stall-analyze: wrote {target}\n"
    cli.main([str(SAMPLES / "healthy"), "--html", str(target), "--json"])
    assert json.loads(capsys.readouterr().out)["runs"]


def test_only_the_page_s_own_script_may_run() -> None:
    text = html.render(document(sample("healthy")), [None])
    (digest,) = re.findall(r"script-src 'sha256-([^']+)'", text)
    script = text.rpartition('<script type="module">')[2].partition("</script>")[0]
    assert base64.b64decode(digest) == hashlib.sha256(script.encode()).digest()
    assert "unsafe" not in text.partition("</head>")[0]
