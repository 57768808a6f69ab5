"""Decodes JSON and YAML to the values of `core`. Each error names the field, and sizes are limited.

This package reads no socket and keeps no state.
"""
