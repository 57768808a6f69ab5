"""Loads a cluster from a file: the objects of `kubectl get -o json` or YAML, a dump of the mirror, or a golden case.

`app.commands` chooses the file and prints the messages.
"""
