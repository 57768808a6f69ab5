"""The measurements of each filter plugin, for one node and summarised over all: `amounts.py` has them together."""
