"""The command line of `kindred`: a module for each command, with the text that it prints.

No other package imports this one. A command runs the service of `app.wiring.main` or calls a running one; it decides
nothing itself.
"""
