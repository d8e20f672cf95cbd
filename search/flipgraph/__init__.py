"""The flip graph: moves, walks on a processor and, in `gpu/`, on GPUs, and the graph itself."""
