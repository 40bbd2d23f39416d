"""Records that are quick to create behave like dataclasses."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import field, replace

import pytest

from stall_analyzer.model.records import MANY, dataclass


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 2
    tags: tuple[str, ...] = field(default_factory=tuple)


@dataclass(frozen=True)
class Named(Point):
    """It has one more field."""

    name: str = ""


@dataclass(frozen=True)
class Nothing: ...


@dataclass
class Counter:
    count: int = 0


@dataclass(frozen=True, eq=False)
class Itself:
    one: int = 1


@dataclass
class Lists:
    values: list[int] = field(default_factory=list)


def test_they_are_equal_if_their_fields_are() -> None:
    assert Point(1) == Point(1, 2, ()) != Point(1, 3)
    assert Named(1, name="a") == Named(1, name="a") != Named(1, name="b")
    assert Nothing() == Nothing()
    assert Counter() == Counter(0) != Counter(1)


def test_classes_are_not_equal_whatever_their_fields() -> None:
    assert Point(1) != Named(1)


def test_only_what_cannot_change_has_a_hash() -> None:
    assert len({Point(1), Point(1), Point(2), Nothing(), Nothing()}) == 3
    with pytest.raises(TypeError, match="unhashable"):
        hash(Counter())


def test_one_that_is_only_equal_to_itself() -> None:
    one = Itself()
    assert one != Itself()
    assert len({one, Itself()}) == 2


def test_they_are_shown_by_their_fields() -> None:
    assert repr(Named(1, name="a")) == "Named(x=1, y=2, tags=(), name='a')"


def test_they_are_changed_taken_apart_and_sent_as_any_other() -> None:
    point = Named(1, name="a")
    assert replace(point, x=5) == Named(5, name="a")
    assert dataclasses.asdict(point) == {"x": 1, "y": 2, "tags": (), "name": "a"}
    assert pickle.loads(pickle.dumps(point)) == point


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), ((1, 2, (), 4), {}), ((1,), {"x": 1}), ((1,), {"z": 1}), ((), {"y": 1})],
)
def test_they_refuse_what_is_missing_unknown_or_given_twice(
    values: tuple[object, ...], named: dict[str, object]
) -> None:
    with pytest.raises(TypeError, match="Point"):
        Point(*values, **named)  # type: ignore[arg-type]


def test_those_of_which_there_are_many_are_made_as_the_first_ones() -> None:
    @dataclass(frozen=True)
    class Often(Point):
        seen: list[int] = field(default_factory=list, kw_only=True)

    made = [Often(number, tags=("a",)) for number in range(2 * MANY)]
    assert Often.__init__ is not Point.__init__
    assert made[-1] == Often(2 * MANY - 1, 2, ("a",), seen=[]) != made[0]
    assert list(vars(made[-1])) == list(vars(made[0])) == ["x", "y", "tags", "seen"]
    assert made[-1].seen is not made[-2].seen
    with pytest.raises(TypeError, match="Often"):
        Often()  # type: ignore[call-arg]


def test_each_has_its_own_default() -> None:
    assert Lists().values is not Lists().values


def test_their_attributes_are_in_the_order_of_the_fields() -> None:
    assert list(vars(Named(tags=(), name="a", x=1))) == ["x", "y", "tags", "name"]
