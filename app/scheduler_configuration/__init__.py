"""A KubeSchedulerConfiguration: reading it as kube-scheduler does, its plugin sets, and which extender is Kindred.

Findings about a registration are in `app.commands.doctor`; the rules of explanations are in `app.explain`.
"""
