"""nbgrader's own extension points, so that plain `nbgrader` commands grade as this course means it."""
