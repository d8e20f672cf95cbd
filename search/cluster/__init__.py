"""Search on many machines: workers of a Ray cluster, each with its own session. Importing it does not import Ray."""
