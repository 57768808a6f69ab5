"""Questions of people, and what they are answered."""
