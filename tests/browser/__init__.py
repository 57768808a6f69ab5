"""The page of the admin port in a real browser."""
