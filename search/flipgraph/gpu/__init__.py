"""The same walks for GPUs: layout, kernel and its twin, fleets of walkers, and sessions of runs."""
