#!/usr/bin/env bash
# Annotations onto the log, the report into the job's summary, the result into a file.
# Reads LOGDIR, LIMITS, BASELINE and TOLERANCE; the last three may be empty.
set -euo pipefail

base="$RUNNER_TEMP/stall-base/result.jsonl"
result="$RUNNER_TEMP/stall-result.jsonl"
report="$RUNNER_TEMP/stall-report.md"
annotations="$RUNNER_TEMP/stall-annotations.txt"

options=()
for limit in $LIMITS; do options+=(--fail-over "$limit"); done
compared=()
if [ -z "$BASELINE" ] && [ -e "$base" ]; then BASELINE=$base; fi
if [ -n "$BASELINE" ]; then compared=(--baseline "$BASELINE" ${TOLERANCE:+--tolerance "$TOLERANCE"}); fi

analyze() {
  code=0
  stall-analyze "$LOGDIR" ${options[@]+"${options[@]}"} ${compared[@]+"${compared[@]}"} "$@" || code=$?
}

analyze --format github -o "$annotations" --jsonl "$result"
if [ "$code" = 2 ] && [ "$BASELINE" = "$base" ]; then
  echo "::notice title=stall::No run of the base branch has the name of a run here: nothing to compare."
  compared=()
  analyze --format github -o "$annotations" --jsonl "$result"
fi
verdict=$code
if [ -e "$annotations" ]; then cat "$annotations"; fi
analyze --markdown -o "$report"  # what was read is kept, so this reads nothing again

if [ -e "$report" ]; then cat "$report" >> "$GITHUB_STEP_SUMMARY"; fi
if [ "$GITHUB_EVENT_NAME" != pull_request ] && [ -e "$result" ]; then
  mkdir -p "$(dirname "$base")"
  cp "$result" "$base"
fi
{
  echo "exit-code=$verdict"
  echo "result=$result"
  echo "report=$report"
} >> "$GITHUB_OUTPUT"
