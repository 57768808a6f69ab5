"""What would help a pod that fits nowhere: small changes, each tried out by the plugins that refuse it."""
