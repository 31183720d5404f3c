"""The OpenAPI document and its schemas."""
