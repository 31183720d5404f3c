"""The drift alarm."""
