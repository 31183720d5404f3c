"""Tests of the doors, against a running gateway."""
