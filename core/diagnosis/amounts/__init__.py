"""The measurements of each filter plugin: of one node (`node_amounts.py`), and summed up (`cluster_amounts.py`)."""
