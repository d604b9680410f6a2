"""Tests of autograder.reference."""
