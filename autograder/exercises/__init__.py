"""The exercises by id, one module a lesson."""

from __future__ import annotations

from autograder.exercises import block, embedding, order, relative, rotary, sinusoidal
from autograder.exercises.declaration import Exercise

LESSONS = (order, sinusoidal, embedding, block, rotary, relative)

EXERCISES: dict[str, Exercise] = {exercise.id: exercise for lesson in LESSONS for exercise in lesson.EXERCISES}
"""Every exercise of the course."""
