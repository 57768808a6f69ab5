"""The plugins, under upstream's names. They import the framework and the mirror, but not each other."""
