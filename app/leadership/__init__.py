"""The Lease: who is elected, when that is renewed and given up, and the calls to the API server for it.

What a replica may do while it does not lead is decided by those who ask `app.verbs.serving_state`.
"""
