"""Planning: strategies, candidates, cost models, profiles, and the selection of a plan for a request."""
