"""The exit codes of every command."""

FAILED = 1
BAD_INPUT = 2
UNMET = 3
INTERRUPTED = 130

EXIT_CODES = {
    0: "success",
    FAILED: "a run that failed, or a model that gave no verdict that can be read",
    BAD_INPUT: "bad input, such as a damaged run folder",
    UNMET: "what was demanded does not hold, or a certificate is not valid",
    INTERRUPTED: "interrupted",
}
