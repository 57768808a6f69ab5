"""DynamicResources: which nodes have the devices that the claims of a pod request."""
