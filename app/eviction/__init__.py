"""Preemption by Kindred itself, for pods that kube-scheduler gives up: the dry run in turns, and the evictions.

The verb `preempt`, where kube-scheduler asks, is in `app.verbs`.
"""
