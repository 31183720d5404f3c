"""The tables of models."""
