"""Walks on GPUs: layout, kernel and its twin on the processor, fleets of walkers, and sessions of runs."""
