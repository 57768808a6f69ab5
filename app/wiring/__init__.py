"""The builders of a service: each makes one part from the settings and the parts before it, complete when it is made.

Nothing is decided here, and no attribute of a finished object is set. Where two objects need each other, both get a
third one that is made first. Only the mirror is there before the service; `engine.prepare_mirror` makes it ready.
"""
