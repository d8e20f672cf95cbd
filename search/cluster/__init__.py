"""Search on many machines: workers of a Ray cluster, each with a session of its own. Importing it imports no Ray."""
