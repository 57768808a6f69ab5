"""The settings of the service: their groups, types, rules and sources, and the numbers that are no settings.

Not here: what a setting does, which is in the room that does it, and the flags of other commands (commands).
"""
