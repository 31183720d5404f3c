"""What games spend and save, in tokens and in money."""
