"""Preemption by Kindred itself, for pods that kube-scheduler gives up: the plans, one pod at a time, and the evictions.

The verb `preempt`, which kube-scheduler calls, is in `app.verbs`.
"""
