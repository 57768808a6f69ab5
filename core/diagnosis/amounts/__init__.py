"""What each filter plugin measured: of one node (`node_amounts.py`), and summed up (`cluster_amounts.py`)."""
