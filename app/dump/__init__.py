"""A cluster from a file: the objects of `kubectl get -o json` or YAML, a dump of the mirror, or a golden case.

Which file, and what is said while it is read, is decided in `app.commands`.
"""
