"""A KubeSchedulerConfiguration: reading it as kube-scheduler does, its plugin sets, and which extender is Kindred.

What is wrong with a registration is in `app.commands.doctor`; what a pod is explained by is in `app.explain`.
"""
