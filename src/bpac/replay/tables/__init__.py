"""Tables of recorded answers: the table itself, the file formats, and the built-in tables."""
