"""What a plugin is, and what it answers."""
