"""Running a notebook in a kernel of its own, with limits."""
