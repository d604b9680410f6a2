"""The exercises by id, one module a lesson."""

from __future__ import annotations

from autograder.exercises import order, sinusoidal
from autograder.exercises.declaration import Exercise

EXERCISES: dict[str, Exercise] = {exercise.id: exercise for exercise in (*order.EXERCISES, *sinusoidal.EXERCISES)}
"""Every exercise of the course."""
