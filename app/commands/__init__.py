"""The command line of `kindred`: a module for each command, with the text that it prints.

Nothing imports this room. A command runs the service of `app.main` or asks a running one; it decides nothing itself.
"""
