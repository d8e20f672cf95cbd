"""The cases of the suites of `lcma bench`, one file each; the suites themselves are a table."""
