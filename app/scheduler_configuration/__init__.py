"""A KubeSchedulerConfiguration: reads it as kube-scheduler does, merges its plugin sets, and finds Kindred's extender.

`app.commands.doctor` has the findings about a registration. `app.explain` has the rules of explanations.
"""
