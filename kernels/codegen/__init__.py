"""From the linear maps of a program to compiled code."""
