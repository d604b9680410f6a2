"""Intake: what learning platforms export, as folder or archive, becomes a list of submissions."""
