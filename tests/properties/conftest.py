"""The hypothesis profiles: `HYPOTHESIS_PROFILE=thorough` tries far more than an ordinary run."""

import os

from hypothesis import settings

# No deadline: machines that build and test at the same time are noisy, and an example's time says nothing.
settings.register_profile("ordinary", deadline=None, max_examples=100, stateful_step_count=20)
settings.register_profile("thorough", deadline=None, max_examples=2000, stateful_step_count=50)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ordinary"))
