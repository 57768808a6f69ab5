"""The cost of hostile input: forms of attacks, their measurement, and a search for worse ones."""
