"""From a request to a plan: strategies, candidates, cost models, profiles."""
