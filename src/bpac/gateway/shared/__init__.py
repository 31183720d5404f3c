"""Games that several gateways share through Redis, as this gateway uses and shows them (``bpac.stores.redis``)."""
