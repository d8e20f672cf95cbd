"""The flip graph: moves, walks over it on a processor and, in `gpu/`, on GPUs, and the graph itself."""
