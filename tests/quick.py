"""`python -m tests.quick`: the command line of Kindred with other limits, as JSON in KINDRED_TEST_LIMITS."""

import json
import os

from app.settings import limits

vars(limits)["DEFAULTS"] = limits.Limits(**json.loads(os.environ["KINDRED_TEST_LIMITS"]))

from app.commands.cli import main  # noqa: E402  # the other modules take the limits when they are imported

if __name__ == "__main__":
    main(prog_name="kindred")
