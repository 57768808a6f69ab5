"""VolumeBinding: nodes that can reach the pod's volumes, or where volumes can be found or made for it."""
