"""The doors of the gateway: the APIs in which callers may ask, each of which leads to every model."""
