"""One call, one node: `filter` decides where a pod goes, assumes it there, and answers that node alone."""
