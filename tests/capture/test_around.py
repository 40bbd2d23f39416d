"""Calls with something done before and after: in C, and the same in Python."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from tb_stall_plugin.capture.training import around
from tb_stall_plugin.capture.training.around import InPython, Instead

IN_C = around._Around

FORMS = [
    pytest.param(InPython, id="python"),
    pytest.param(
        IN_C,
        id="c",
        marks=pytest.mark.skipif(IN_C is InPython, reason="built without a C compiler"),
    ),
]
both_forms = pytest.mark.parametrize("form", FORMS)
Form = Callable[..., Any]


def divided(a: int, b: int = 1) -> float:
    """What is called."""
    return a / b


@both_forms
def test_a_call_is_made_as_it_is_if_nothing_is_to_be_done(form: Form) -> None:
    seen = []
    assert form(divided, lambda *given, **named: seen.append((given, named)))(6, b=3) == 2
    assert seen == [((6,), {"b": 3})]
    assert form(divided, None)(6, 2) == 3


@both_forms
def test_afterward_the_result_is_told(form: Form) -> None:
    told: list[tuple[Any, bool]] = []
    plan = Instead(after=lambda result, failed: told.append((result, failed)))
    assert form(divided, lambda *_, **__: plan)(6, b=3) == 2
    assert told == [(2, False)]


@both_forms
def test_errors_pass_and_are_told(form: Form) -> None:
    told: list[tuple[Any, bool]] = []
    plan = Instead(after=lambda result, failed: told.append((result, failed)))
    with pytest.raises(ZeroDivisionError):
        form(divided, lambda *_: plan)(6, 0)
    assert told == [(None, True)]


@both_forms
def test_an_error_of_ours_is_raised_like_one_in_a_finally(form: Form) -> None:
    def after(result: Any, failed: bool) -> None:
        raise KeyError("ours")

    for number in (0, 1):
        with pytest.raises(KeyError, match="ours"):
            form(divided, lambda *_: Instead(after=after))(6, number)

    def before(*given: Any) -> Instead:
        raise KeyError("before")

    with pytest.raises(KeyError, match="before"):
        form(divided, before)(6, 2)


@both_forms
def test_something_else_may_be_called_with_other_arguments(form: Form) -> None:
    assert form(divided, lambda *_: Instead(max))(6, 2) == 6
    assert form(divided, lambda *_, **__: Instead(arguments=(9,), named={"b": 3}))(6, b=2) == 3
    assert form(divided, lambda *_: Instead(arguments=(9,)))(6, 2) == 9


@both_forms
def test_it_can_stand_in_for_a_method(form: Form) -> None:
    class Owner:
        number = 6

        def over(self, b: int) -> float:
            return self.number / b

    Owner.over = form(Owner.over, lambda owner, b: None)  # type: ignore[method-assign]
    assert Owner().over(3) == 2
    assert Owner.over(Owner(), 2) == 3


@both_forms
def test_one_that_is_taken_out_while_it_is_called_still_makes_the_call(form: Form) -> None:
    def before(*given: Any) -> Instead:
        stand_in.before = None
        return Instead()

    stand_in = form(divided, before)
    assert stand_in(6, 3) == stand_in(6, 3) == 2


@both_forms
def test_it_keeps_nothing_alive_that_refers_to_it(form: Form) -> None:
    class Owner:
        def __call__(self) -> None: ...

    owner = Owner()
    owner.stand_in = form(owner, None)  # type: ignore[attr-defined]
    known = weakref.ref(owner)
    del owner
    gc.collect()
    assert known() is None


@pytest.mark.skipif(IN_C is InPython, reason="built without a C compiler")
def test_in_c_it_has_no_frame() -> None:
    def caller() -> str:
        return sys._getframe(1).f_code.co_name

    stand_in = around.Around(caller, lambda: Instead(after=lambda *_: None))
    assert stand_in() == "test_in_c_it_has_no_frame"


def test_it_looks_like_what_it_stands_in_for() -> None:
    stand_in = around.Around(divided, lambda *_: None)
    assert (vars(stand_in)["__name__"], stand_in.__doc__) == ("divided", "What is called.")
