"""The plugins, under upstream's names. They know the framework and the mirror, and nothing of each other."""
