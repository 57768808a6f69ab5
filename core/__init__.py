"""The domain of Kindred: pure and synchronous. No I/O, no HTTP or Kubernetes client, no clock."""
