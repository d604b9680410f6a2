"""Lesson 06, relative encodings: its exercises in order."""

from __future__ import annotations

from autograder.exercises.relative_bias import ALIBI_BIAS, ALIBI_SLOPES, RELATIVE_DISTANCE, T5_BIAS, T5_BUCKET
from autograder.exercises.relative_quiz import QUIZ
from autograder.exercises.relative_scores import DEBERTA_SCORES, RELATIVE_SHIFT, TRANSFORMER_XL_SCORES

EXERCISES = (
    RELATIVE_DISTANCE,
    T5_BUCKET,
    T5_BIAS,
    ALIBI_SLOPES,
    ALIBI_BIAS,
    RELATIVE_SHIFT,
    TRANSFORMER_XL_SCORES,
    DEBERTA_SCORES,
    QUIZ,
)
