"""Environment variables that a process has before it loads torch and matplotlib, and that every kernel keeps."""

BEFORE_LOADING = {"OMP_NUM_THREADS": "1", "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
"""One thread, for a process with several must not fork; figures go into the notebook."""
