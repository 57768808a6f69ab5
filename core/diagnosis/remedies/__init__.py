"""Remedies for a pod that fits nowhere: small changes, each tried with the plugins that reject it."""
