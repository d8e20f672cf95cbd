"""What triangular schemes save: operations, memory traffic, errors."""
