"""VolumeRestrictions: disks that two pods on a node cannot share, and claims that two pods cannot share anywhere."""
