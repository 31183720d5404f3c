"""The router: decide, observe, journal. Pure; it never touches a clock, a file or a socket."""
