"""`kindred serve` as it is, save that a read lasts two seconds at most: in service it is 75 s, and no setting."""

from typing import Final

from app.api_server.client import ApiClient
from app.commands.cli import main

READ_TIMEOUT: Final = 2.0  # seconds
STALE_AFTER: Final = 6.0
"""Seconds that a watch which is renewed so often needs, with room for a busy machine."""

if __name__ == "__main__":
    defaults = ApiClient.__init__.__kwdefaults__
    assert defaults is not None
    defaults["read_timeout"] = READ_TIMEOUT
    main(prog_name="kindred")
