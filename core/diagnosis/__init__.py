"""Why: what filter and prioritize say of each node, taken apart."""
