"""Remedies of hand-made clusters; those of random ones are in tests/properties/test_remedies.py."""
