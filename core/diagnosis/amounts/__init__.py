"""The measurements of each filter plugin: for one node (`node_amounts.py`), and summarised (`cluster_amounts.py`)."""
