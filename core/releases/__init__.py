"""The supported releases of Kubernetes, and the rules that differ between them, as a table.

Plugins read single rules from `mirror.rules`, and never a release. To add a release, add an entry to RELEASES, a stage
to GATES where defaults changed, and an entry to DIFFERENCES where a result changed.
"""
