"""VolumeBinding: finds nodes that can reach the pod's volumes, or for which volumes can be found or created."""
