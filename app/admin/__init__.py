"""The admin port: its routes, its page, and the description of both ports.

A route turns a request into a call and a value into JSON. Values are computed in `app.explain`, `app.telemetry` or
`core`.
"""
