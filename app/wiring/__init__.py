"""The builders of a service. Each makes one complete part from the settings and the earlier parts.

Builders have no logic of their own, and set no attribute of a finished object. If two objects need each other, both get
a third object that is made first. Only the mirror exists before the service.
"""
