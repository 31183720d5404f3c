"""The dashboard: what a router has done so far, and whether its promise is kept, as a web page for operators."""
