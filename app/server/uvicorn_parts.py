"""All parts of uvicorn that Kindred uses. No other module imports uvicorn.

The connection of a verb is a subclass of uvicorn's HTTP/1.1 protocol, which is not part of its public API: any minor
release may change it. So pyproject.toml has an upper bound. To raise it, compare these in uvicorn's source:

    protocols/http/httptools_impl.py   HttpToolsProtocol: the callbacks of the parser, the order in which they set
                                       `url`, `headers`, `scope`, `cycle` and `pipeline`, `_start_asgi_task`, and
                                       `set_dangerous_leniencies` in `__init__`; RequestResponseCycle: the attributes
                                       that VerbRequestCycle sets in place of its `__init__`
    protocols/http/flow_control.py     FlowControl: `read_paused`, `write_paused`, `_transport`, `drain`
    server.py                          ServerState: `connections`, `tasks`, `default_headers`, `total_requests`;
                                       Server: `serve`, `startup`, `capture_signals`, how `shutdown` ends connections
    config.py                          Config: `http_protocol_class`, `load`, `timeout_graceful_shutdown`

`tests/app/server` shows breakage: it runs the protocol over sockets, byte by byte and pipelined.
"""

from uvicorn import Config
from uvicorn import Server as UvicornServer
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

__all__ = ["Config", "FlowControl", "HttpToolsProtocol", "RequestResponseCycle", "ServerState", "UvicornServer"]
