"""Reading what was submitted, whatever an editor made of it, and fitting it to the released notebook."""
