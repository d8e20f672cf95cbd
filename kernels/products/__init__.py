"""Products of arrays and of plain tensors, a module for each family: check operands, request a plan, run it."""
