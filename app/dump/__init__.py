"""A cluster from a file: the objects of `kubectl get -o json` or YAML, a dump of the mirror, or a golden case.

The choice of the file, and the messages while it is read, are in `app.commands`.
"""
