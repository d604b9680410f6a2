"""One submission to a result, a class to the gradebook: the one place where reading, running and judging meet."""
