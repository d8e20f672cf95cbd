"""Search of outer schemes whose products share factors, for products of blocks with a given inner format."""
