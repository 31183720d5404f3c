"""The journal: its entries, hash chain, snapshots, and rebuilding a router from it."""
