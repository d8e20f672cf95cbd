"""The family of dense products, by the vendor or by schemes."""
