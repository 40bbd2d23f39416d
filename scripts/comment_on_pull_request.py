"""Posts a report as a comment on the pull request of a GitHub job, and keeps it up to date.

The action in .github/actions/stall runs `python comment_on_pull_request.py NAME REPORT` in the
environment of a workflow. It needs only the standard library, since it runs in whatever Python the
job has. If it cannot comment (a fork's token may not write), that is a warning, not a failure.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

PAGE = 100  # comments; GitHub returns no more at once
MOST_PAGES = 30
LONGEST = 60_000  # characters; GitHub takes 65,536
WAIT_S = 30.0


def main(name: str, report: Path) -> int:
    number = _pull_request()
    if number is None or not report.is_file():
        print("::notice title=stall::there is no pull request to comment on, or no report")
        return 0
    marker = f"<!-- stall-analyze: {name} -->"
    body = f"{marker}\n{shortened(report.read_text(encoding='utf-8'))}"
    try:
        address = put_comment(number, marker, body)
    except (URLError, OSError, ValueError) as error:
        print(f"::warning title=stall::could not comment on the pull request: {error}")
        return 0
    print(f"commented: {address}")
    return 0


def put_comment(number: int, marker: str, body: str) -> str:
    """Returns its address."""
    comments = f"{_repository()}/issues/{number}/comments"
    known = _known(comments, marker)
    if known is None:
        return str(_ask("POST", comments, {"body": body})["html_url"])
    return str(
        _ask("PATCH", f"{_repository()}/issues/comments/{known}", {"body": body})["html_url"]
    )


def shortened(report: str) -> str:
    """Makes the report fit: what changed stays visible, and the single runs are folded away."""
    changed, fold, runs = report.partition("\n## ")
    folded = f"{changed}\n<details><summary>the runs</summary>\n\n## {runs}\n</details>\n"
    text = folded if fold and changed.strip() else report
    if len(text) <= LONGEST:
        return text
    end = "\n</details>\n" if text is folded else "\n"
    return f"{text[:LONGEST].rpartition(chr(10))[0]}\n\n… the rest is in the job's summary.{end}"


def _known(comments: str, marker: str) -> int | None:
    for page in range(1, MOST_PAGES + 1):
        found = _ask("GET", f"{comments}?per_page={PAGE}&page={page}")
        for comment in found:
            if str(comment["body"]).startswith(marker):
                return int(comment["id"])
        if len(found) < PAGE:
            break
    return None


def _ask(method: str, address: str, content: dict[str, str] | None = None) -> Any:
    data = None if content is None else json.dumps(content).encode()
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
        "Content-Type": "application/json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    with urlopen(Request(address, data, headers, method=method), timeout=WAIT_S) as answer:
        return json.load(answer)


def _repository() -> str:
    return f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}"


def _pull_request() -> int | None:
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    number = event.get("pull_request", {}).get("number")
    return None if number is None else int(number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
