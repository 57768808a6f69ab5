"""Tests, in the same tree as the code, beside those that hold the whole against golden data and a naive reference."""
