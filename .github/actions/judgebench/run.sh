#!/usr/bin/env bash
# Run a command of judgebench, write what it prints into the summary of the job and into one comment on the
# pull request, and end with the exit code of the command.
set -uo pipefail

case "$COMMAND" in
  decide | compare | watch) ;;
  *) echo "::error::command is decide, compare or watch; found $COMMAND"; exit 2 ;;
esac
if [ -n "$REQUIRE" ] && [ "$COMMAND" != decide ]; then
  echo "::error::require is of decide; compare takes --fail-on in arguments"
  exit 2
fi

# Inputs are data: they are split into words as a shell does, and nothing in them is run.
split() { python3 -c 'import shlex, sys; print(*shlex.split(sys.argv[1]), sep="\0", end="\0")' "$1"; }
words=("$COMMAND")
for input in "$FILES" "$ARGUMENTS"; do
  [ -z "${input//[[:space:]]/}" ] || mapfile -t -d "" -O "${#words[@]}" words < <(split "$input")
done
while IFS= read -r demand; do
  [ -z "$demand" ] || words+=(--require "$demand")
done <<<"$REQUIRE"

folder=$(mktemp -d)
COLUMNS=110 judgebench "${words[@]}" >"$folder/out.txt" 2>&1
code=$?
cat "$folder/out.txt"

title=${TITLE:-judgebench $COMMAND}
marker="<!-- $title -->"
case "$code" in
  0) result="✅ done" ;;
  3) result="❌ what was demanded does not hold" ;;
  *) result="⚠️ exit code $code" ;;
esac
{
  printf '%s\n### %s: %s\n\n`````text\n' "$marker" "$title" "$result"
  head -c 60000 "$folder/out.txt" # a comment holds 65,536 characters
  printf '\n`````\n'
} >"$folder/result.md"
cat "$folder/result.md" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"

# One comment for each title, found by its first line and updated.
comment() {
  local comments="repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments" id
  id=$(gh api --paginate "$comments" --jq '.[] | "\(.id) \(.body | split("\n")[0])"' |
    tr -d '\r' | awk -v marker="$marker" 'index($0, " " marker) {print $1; exit}') || return 1
  if [ -n "$id" ]; then
    gh api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$id" -F "body=@$folder/result.md"
  else
    gh api --method POST "$comments" -F "body=@$folder/result.md"
  fi >/dev/null
}
if [ "$COMMENT" = true ] && [ -n "$PULL_REQUEST" ]; then
  comment || echo "::warning::the comment could not be written: it needs permissions: {pull-requests: write}"
fi
exit "$code"
