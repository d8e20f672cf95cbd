"""Products by matrices stored as factors: Kronecker-sparse, low-rank, Monarch and BLAST; see `lcma.kronecker` and
`lcma.block_low_rank` for the names.
"""
