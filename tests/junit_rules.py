"""What a JUnit report may contain, written by hand: no package comes with one of its schemas.

This is the common part of the two that are in use, of Jenkins's xunit plugin and of Ant: elements,
where they may be, and their attributes. They spell `<error>` differently, so it is left out.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element

# element: (required attributes, optional attributes, elements in it)
RULES: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"time", "skipped", "timestamp", "hostname", "id", "package"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name", "classname"},
        {"time"},
        {"skipped", "failure", "system-out", "system-err"},
    ),
    "failure": ({"type"}, {"message"}, set()),
    "skipped": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
    "system-err": (set(), set(), set()),
}
NUMBERS = ("tests", "failures", "errors", "skipped")
TIME = re.compile(r"\d+(\.\d{0,3})?")


def broken_rules(element: Element) -> list[str]:
    """Empty for a valid report."""
    required, further, children = RULES[element.tag]
    there = set(element.attrib)
    found = [f"{element.tag} lacks {name}" for name in required - there]
    found += [f"{element.tag} has {name}" for name in there - required - further]
    found += [
        f"{name}={element.attrib[name]}"
        for name in NUMBERS
        if name in there and not element.attrib[name].isdecimal()
    ]
    if "time" in there and not TIME.fullmatch(element.attrib["time"]):
        found.append(f"time={element.attrib['time']}")
    if element.tag == "testsuite":
        found += _wrong_counts(element)
    for child in element:
        if child.tag in children:
            found += broken_rules(child)
        else:
            found.append(f"{child.tag} in {element.tag}")
    return found


def _wrong_counts(suite: Element) -> list[str]:
    counted = {
        "tests": len(suite.findall("testcase")),
        "failures": len(suite.findall("testcase/failure")),
    }
    return [
        f"{name} is {suite.attrib[name]} and should be {count}"
        for name, count in counted.items()
        if suite.attrib[name] != str(count)
    ]
