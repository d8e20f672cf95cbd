"""Code generation: from the linear maps of a program to compiled code."""
