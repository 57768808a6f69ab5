"""Preemption: what the verb `preempt` is answered with, and preemption by Kindred itself."""
