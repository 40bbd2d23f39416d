#!/usr/bin/env bash
# Writes annotations to the log, the report into the job's summary, and the result into a file.
# Reads NAME, LOGDIR, LIMITS, BASELINE and TOLERANCE; the last three may be empty.
set -euo pipefail

base="$RUNNER_TEMP/stall-base-$NAME/result.jsonl"
folder="$RUNNER_TEMP/stall-$NAME"
result="$folder/result.jsonl" report="$folder/report.md"
annotations="$folder/annotations.txt" errors="$folder/errors.txt"
rm -rf "$folder"  # left by an earlier use in this job
mkdir -p "$folder"

options=()
for limit in $LIMITS; do options+=(--fail-over "$limit"); done
if [ "$GITHUB_EVENT_NAME" != pull_request ] || [ ! -e "$base" ]; then base=; fi
compared=()
if [ -n "${BASELINE:=$base}" ]; then compared=(--baseline "$BASELINE"); fi
# Not given as an option: that would be refused if there is nothing to compare with.
if [ -n "$TOLERANCE" ]; then export STALL_TOLERANCE="$TOLERANCE"; fi

analyze() {
  code=0
  stall-analyze "$LOGDIR" ${options[@]+"${options[@]}"} ${compared[@]+"${compared[@]}"} "$@" 2> "$errors" || code=$?
}

analyze --format github -o "$annotations" --jsonl "$result"
if [ "$code" = 2 ] && [ -n "$base" ] && [ "$BASELINE" = "$base" ]; then
  why=$(tail -n 1 "$errors")
  compared=()
  analyze --format github -o "$annotations" --jsonl "$result"
  if [ "$code" != 2 ]; then echo "::warning title=stall::Not compared with the base branch: $why"; fi
fi
verdict=$code
cat "$errors" >&2
if [ -e "$annotations" ]; then cat "$annotations"; fi
analyze --markdown -o "$report"  # results are kept, so nothing is read again

if [ -e "$report" ]; then cat "$report" >> "$GITHUB_STEP_SUMMARY"; fi
if [ "$GITHUB_EVENT_NAME" != pull_request ] && [ -e "$result" ]; then
  mkdir -p "$RUNNER_TEMP/stall-base-$NAME"
  cp "$result" "$RUNNER_TEMP/stall-base-$NAME/"
fi
{
  echo "exit-code=$verdict"
  echo "result=$result"
  echo "report=$report"
} >> "$GITHUB_OUTPUT"
