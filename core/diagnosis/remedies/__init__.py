"""Remedies for a pod that fits on no node: small changes, each tried with the plugins that reject the pod."""
