"""Tests of autograder.exercises."""
