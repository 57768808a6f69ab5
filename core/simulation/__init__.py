"""What would happen: many pods placed one after the other on a supposed cluster, and the questions that need it."""
