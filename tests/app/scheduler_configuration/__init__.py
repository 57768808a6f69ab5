"""Tests of the KubeSchedulerConfiguration."""
