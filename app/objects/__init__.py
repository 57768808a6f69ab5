"""JSON and YAML to the values of `core`, with the name of the field in each error, and the bounds on what they hold.

Nothing here reads a socket or keeps a state.
"""
