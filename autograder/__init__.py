"""The grader of Order Matters: asks an answer questions, compares it with a reference, names the mistake."""
