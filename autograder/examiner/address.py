"""How a kernel is told where its examiner is. Loads nothing: grader, kernel and examiner all read it."""

ADDRESS_VARIABLE = "ORDER_MATTERS_EXAMINER"
"""Environment variable with the examiner's socket; absent when `grade` judges in the same process."""
KEY_VARIABLE = "ORDER_MATTERS_EXAMINER_KEY"
"""Environment variable with the key (hex) that opens the socket for this kernel."""
