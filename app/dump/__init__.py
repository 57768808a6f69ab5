"""Loads a cluster from a file: the objects of `kubectl get -o json` or YAML.

`app.commands` chooses the file and prints the messages.
"""
