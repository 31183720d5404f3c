"""Plug-ins for other programs: each is loaded by the program that it is for."""
