"""What a plugin may add to an explanation: the decision that it sees, and the facts and steps that it returns."""
