"""The client of the API server, and all kinds of credentials for it.

No other room imports `aiohttp` or `kubernetes`. `app.commands` has `httpx`, for requests to a running Kindred. This
room is independent of the objects that are read or written.
"""
