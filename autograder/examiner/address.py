"""How a kernel is told where its examiner is. Loads nothing: grader, kernel and examiner all read it."""

EXAMINER_VARIABLE = "ORDER_MATTERS_EXAMINER"
"""Environment variable with the number of the open connection to the examiner; absent when `grade` judges in the same
process."""
