"""What manifests/ is rendered to, held against the code and against itself."""
