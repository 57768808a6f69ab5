"""Tests in the tree of the code, and tests that compare the whole with golden data and a naive reference."""
