"""What a router has been doing, and whether its promise is kept: for people to look at."""
