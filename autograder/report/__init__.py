"""What people look at: the table in the terminal, the feedback page of a student."""
