"""Explanations are of the decisions that the verbs make, and what they name is what makes them."""
