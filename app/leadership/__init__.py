"""The Lease: who is elected, when that is renewed and given up, and the calls to the API server for it.

The users of `app.verbs.serving_state` decide the rights of a replica that does not lead.
"""
