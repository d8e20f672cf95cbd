"""The suites, one file each; a file of this folder with a `SUITE` is a suite of `lcma bench`."""
