"""Compare the recorded files with the modules of each release: `python -m tests.upstream`. `--write` writes them.

`python -m tests.upstream --write 1.38` is for one release. Needs Go and the module proxy, and compiles nothing.
"""

import sys

from tests.e2e.binaries import RELEASES, BuildError
from tests.upstream.recording import RecordError, encoded, file_of, of_release, release_of


def main(arguments: list[str]) -> str:
    """Compare or write, and return the error. Empty if there is none."""
    writes, versions = "--write" in arguments, [each for each in arguments if each != "--write"]
    stale = []
    for version in versions or RELEASES:
        found = of_release(version)
        file = file_of(release_of(found))
        if writes:
            file.write_bytes(encoded(found))
        elif not file.exists() or file.read_bytes() != encoded(found):
            stale.append(f"{file.name} is not what {found.kubernetes} has: python -m tests.upstream --write {version}")
    return "\n".join(stale)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]) or 0)
    except (BuildError, RecordError) as error:
        sys.exit(str(error))
