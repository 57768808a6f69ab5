"""Leader election by a Lease: winning, renewing and releasing it, and the requests to the API server.

The users of `app.verbs.admission` define the rights of a replica that does not lead.
"""
