"""JSON and YAML to the values of `core`, with the name of the field in each error, and bounds on their contents.

Nothing here reads a socket or keeps a state.
"""
