"""What hostile input costs: forms of it, the measuring, and a search for worse ones."""
