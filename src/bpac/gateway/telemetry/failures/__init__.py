"""Failures and rejections: counted, kept, and logged with what to do about them."""
