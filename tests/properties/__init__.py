"""Laws that hold for every cluster and every order of events, tried on random ones."""
