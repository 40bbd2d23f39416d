"""What the checks before the first epoch found, as a finding."""

from __future__ import annotations

from dataclasses import replace

from stall_analyzer.captures.capture_format import CheckFault, CheckName, CheckResult
from stall_analyzer.captures.capture_records import PreflightCheck, PreflightRecord
from stall_analyzer.detectors.numerics import preflight_failed
from stall_analyzer.model.event_log import EventLog
from tests.captures import START_NS
from tests.detectors.logged_losses import checked, severity
from tests.detectors.test_captured import captured
from tests.detectors.training import found

PASSED = PreflightCheck(CheckName.DATA, CheckResult.PASSED, "inputs 32×8 float32")


def with_checks(*checks: PreflightCheck) -> EventLog:
    events = captured({})
    record = PreflightRecord(START_NS - 1, 2.5, checks)
    return replace(events, captures=(replace(events.captures[0], preflights=(record,)),))


def failed(name: str, fault: str) -> PreflightCheck:
    text = "the loss of 16 examples went from 1.1 to 1.09"
    return PreflightCheck(name, CheckResult.FAILED, text, fault)


def test_a_batch_that_cannot_be_learned_by_heart_is_to_be_acted_on() -> None:
    events = with_checks(PASSED, failed(CheckName.OVERFIT, CheckFault.CANNOT_FIT))
    finding = found(checked(preflight_failed, events), "act")
    assert "from 1.1 to 1.09" in finding.explanation and "memorizing examples" in finding.title


def test_labels_that_do_not_fit_are_to_be_considered() -> None:
    events = with_checks(PASSED, failed(CheckName.LABELS, CheckFault.LABELS))
    assert severity(preflight_failed, events) == "consider"


def test_a_layer_without_a_gradient_beside_others_may_be_meant() -> None:
    events = with_checks(PASSED, failed(CheckName.GRADIENTS, CheckFault.UNREACHED))
    assert severity(preflight_failed, events) == "consider"


def test_checks_that_passed_or_could_not_be_made_are_no_finding() -> None:
    why = PreflightCheck(CheckName.LOSS, CheckResult.NOT_CHECKED, "a train_step of its own")
    assert checked(preflight_failed, with_checks(PASSED, why)) is None
    assert checked(preflight_failed, captured({})) is None
