"""NodeVolumeLimits: rejects nodes whose CSI drivers cannot attach more volumes."""
