"""Learning in use: real calls of a request class are timed until its fastest contender is known."""
