"""What every room uses: logs, work beside requests, JSON for people, files up to a bound.

Not here: the start and the end of the process (server).
"""
