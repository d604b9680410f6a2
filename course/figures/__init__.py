"""What the lessons draw with, one module a lesson. The build writes the functions a lesson uses into its notebook."""
