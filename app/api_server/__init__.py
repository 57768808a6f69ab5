"""The client of the API server, and all kinds of credentials for it.

No other room imports `kubernetes`, and of the others only `app.commands` imports `httpx`, to ask a running Kindred.
This room is independent of the objects that are read or written.
"""
