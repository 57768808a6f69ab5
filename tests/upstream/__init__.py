"""What each release of Kubernetes has: the fields of a Pod, and the default plugins of kube-scheduler, in files."""
