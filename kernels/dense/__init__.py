"""One family: products of dense matrices, by the vendor or by schemes."""
