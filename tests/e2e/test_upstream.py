"""What is recorded of a release is what its Go modules have: a new field or plugin fails here first."""

import shutil

import pytest
from msgspec.structs import replace

from tests.e2e.binaries import chosen_module, kubernetes_version
from tests.upstream.recording import file_of, of_release, recorded

WITHOUT_GO = shutil.which("go") is None


@pytest.mark.skipif(WITHOUT_GO, reason="there is no Go to fetch the modules")
def test_the_recorded_fields_and_plugins_are_those_of_the_release() -> None:
    version = kubernetes_version(chosen_module())
    release = ".".join(version[1:].split(".")[:2])
    assert file_of(release).exists(), f"python -m tests.upstream --write {version}"
    found = replace(of_release(version), kubernetes=recorded(release).kubernetes)  # a patch release has the same
    assert found == recorded(release), f"python -m tests.upstream --write {version}"
