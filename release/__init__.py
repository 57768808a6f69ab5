"""The files of a release, made from the commit that is checked out: `make release`."""
