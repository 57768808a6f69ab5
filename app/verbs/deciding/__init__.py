"""One call, one node: `filter` decides on a node for a pod, assumes the pod there, and returns only that node."""
